package broker

import (
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strconv"
)

// Ports are chosen from a range below 32768, where Linux begins to hand out
// ports to outgoing connections: a connection of somebody's must not take the
// port of a broker that is down for a moment.
const (
	lowestPort  = 12000
	highestPort = 31999
)

// freePorts picks n different ports that nothing listens on. Others choose at
// the same time, so that the choice is random, and may still be lost.
func freePorts(n int) ([]int, error) {
	var ports []int
	var last error
	for tries := 0; len(ports) < n; tries++ {
		if tries == 200 {
			return nil, fmt.Errorf("no free port between %d and %d on 127.0.0.1: %w", lowestPort, highestPort, last)
		}
		p := lowestPort + rand.IntN(highestPort-lowestPort+1)
		if slices.Contains(ports, p) {
			continue
		}
		if last = bindable(p); last == nil {
			ports = append(ports, p)
		}
	}
	return ports, nil
}

// bindable looks at both loopback addresses, since epmd takes both. A machine
// without IPv6 has only one.
func bindable(port int) error {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	defer l.Close()
	if probe, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		probe.Close()
		l6, err := net.Listen("tcp6", net.JoinHostPort("::1", strconv.Itoa(port)))
		if err != nil {
			return err
		}
		l6.Close()
	}
	return nil
}

// portTaken recognises the four brokers' words for a port that another process
// took between our look and their bind.
var portTaken = regexp.MustCompile(`(?i)address already in use|eaddrinuse|port_already_in_use|port is already allocated|could not bind|could not create any tcp/ip sockets`)
