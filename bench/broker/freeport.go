package broker

// FreePort picks a port of the loopback address that nothing listens on, and
// that no outgoing connection is given by chance.
func FreePort() (int, error) {
	ports, err := freePorts(1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}
