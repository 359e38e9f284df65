package museum

// All lists the exhibits, by number.
func All() []Exhibit {
	return []Exhibit{deletedIsGone()}
}
