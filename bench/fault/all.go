package fault

// All lists every fault, in the order in which tables show them.
func All() []Fault {
	return []Fault{
		None(),
		ConsumerKillOnReceive(), ConsumerKillMidHandle(), ConsumerKillBeforeAck(), ConsumerKillAfterAck(),
		BrokerKill(), BrokerStop(), BrokerFreeze(),
		ProducerKill(), ZombieConsumer(), SlowConsumer(), ConsumerJoinsLeaves(), Poison(),
		DatabaseDown(), DatabaseKill(), CommitReplyLost(),
	}
}

// Lookup finds a fault by its name.
func Lookup(name string) (Fault, bool) {
	for _, f := range All() {
		if f.Name == name {
			return f, true
		}
	}
	return Fault{}, false
}
