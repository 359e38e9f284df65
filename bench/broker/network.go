package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
)

// ErrNoNetwork means that nodes cannot be kept apart here, or that a broker was
// started without Options.Network. It comes wrapped, with what is missing.
var ErrNoNetwork = errors.New("no network namespaces")

// CutOff parts a node from the other nodes of its cluster, and from nobody else:
// clients reach all of them. It is silent, as with a link that carries nothing:
// connections stay open, and what was said waits. For a broker that was started
// with Options.Network.
func (b *Broker) CutOff(node *Broker) error {
	c, ok := b.host.(*cluster)
	if !ok || c.net == nil {
		return fmt.Errorf("cut off a node of %s: %w: it was started without", b.kind.name, ErrNoNetwork)
	}
	i := slices.Index(c.nodes, node)
	if i < 0 {
		return fmt.Errorf("cut off a node of %s: it is not one of its nodes", b.kind.name)
	}
	c.net.cut(i)
	return nil
}

// Rejoin lets all nodes hear each other again, also what waited.
func (b *Broker) Rejoin() {
	if c, ok := b.host.(*cluster); ok && c.net != nil {
		c.net.cut(nobody)
	}
}

const (
	clients = -1 // whoever is on this machine's own network
	nobody  = -2
)

// network carries what the nodes of a cluster say to each other, and what clients
// say to them. Each node has a loopback of its own and no other link, where the
// ports of the others are relays of ours, so that nothing but this process has to
// end for all of it to be gone.
type network struct {
	life   context.Context
	end    context.CancelFunc
	relays []net.Listener
	spaces []*os.File // the nodes' namespaces
	work   sync.WaitGroup

	mu    sync.Mutex
	apart int           // the node that is cut off
	heals chan struct{} // closed when another one is, or none
}

// relayed is a relay's way: who comes, and to which node.
type relayed struct{ from, to int }

func newNetwork() *network {
	n := &network{apart: nobody, heals: make(chan struct{})}
	n.life, n.end = context.WithCancel(context.Background())
	return n
}

func (n *network) cut(node int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.apart = node
	close(n.heals)
	n.heals = make(chan struct{})
}

// isCut reports whether a node is cut off.
func (n *network) isCut(node int) bool {
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return node == n.apart
}

// pass waits while the way is cut. It reports false once the network has ended.
func (n *network) pass(way relayed) bool {
	for {
		n.mu.Lock()
		shut, heals := way.from != clients && (way.from == n.apart || way.to == n.apart), n.heals
		n.mu.Unlock()
		if !shut {
			return n.life.Err() == nil
		}
		select {
		case <-heals:
		case <-n.life.Done():
			return false
		}
	}
}

// relay carries every connection that ln accepts to what dial reaches.
func (n *network) relay(ln net.Listener, way relayed, dial func() (net.Conn, error)) {
	n.relays = append(n.relays, ln)
	n.work.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			n.work.Go(func() { n.carry(near, way, dial) })
		}
	})
}

func (n *network) carry(near net.Conn, way relayed, dial func() (net.Conn, error)) {
	defer near.Close()
	if !n.pass(way) {
		return
	}
	far, err := dial()
	if err != nil {
		// A refusal is a reset, as it would be without a relay.
		if tcp, ok := near.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return
	}
	defer far.Close()
	stop := context.AfterFunc(n.life, func() { near.Close(); far.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { n.copy(far, near, way) })
	both.Go(func() { n.copy(near, far, way) })
	both.Wait()
}

// copy carries one direction until its end, which it passes on.
func (n *network) copy(to, from net.Conn, way relayed) {
	buf := make([]byte, 64<<10)
	for {
		m, err := from.Read(buf)
		if !n.pass(way) {
			return
		}
		if m > 0 {
			if _, werr := to.Write(buf[:m]); werr != nil {
				from.Close()
				return
			}
		}
		if err != nil {
			if tcp, ok := to.(*net.TCPConn); ok {
				_ = tcp.CloseWrite() // the other direction may go on
			}
			return
		}
	}
}

func (n *network) close() {
	n.end()
	for _, ln := range n.relays {
		ln.Close()
	}
	n.work.Wait()
	for _, s := range n.spaces {
		s.Close()
	}
}
