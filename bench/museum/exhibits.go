package museum

// All lists the exhibits, by number.
func All() []Exhibit {
	return []Exhibit{
		groupDollar(), sameName(), poisonLoop(), requestField(), swappedNames(), continueLoop(), lockBusy(), queueFull(),
		trailingSpace(), noReturn(), userIsOrder(), absolutelyNoLoss(), zeroZero(), deletedIsGone(), windowUnchecked(),
		fieldName(), singleConsumer(), idleMisread(), paidTooEarly(), slowHandler(),
	}
}
