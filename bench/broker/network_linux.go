package broker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// NetworkAvailable says what this machine lacks for Options.Network; nil: nothing.
func NetworkAvailable() error {
	errs := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		errs <- unix.Unshare(unix.CLONE_NEWNET)
	}()
	if err := <-errs; err != nil {
		return fmt.Errorf("%w: network namespaces are for root, on a kernel that has them: %w", ErrNoNetwork, err)
	}
	return nil
}

// standAlone gives what this thread starts from now on a network of its own, of
// which the loopback is all. It lives as long as a process that is in it.
func standAlone() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("make a network namespace: %w", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("set up the loopback: %w", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo)
	}
	if err == nil {
		lo.SetUint16(lo.Uint16() | unix.IFF_UP)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
	}
	if err != nil {
		return fmt.Errorf("set up the loopback: %w", err)
	}
	return nil
}

// connect makes the relays between members, each in a namespace of its own: served
// are the ports of each, of which the first so many are for clients too. common
// are ports of this machine that all of them need, cut off or not.
func connect(members []*member, served [][]int, forClients int, common ...int) (_ *network, err error) {
	n := newNetwork()
	for _, m := range members {
		space, err := namespaceOf(m.supervisor)
		if err != nil {
			n.close()
			return nil, fmt.Errorf("%w: %w", ErrNoNetwork, err)
		}
		n.spaces = append(n.spaces, space)
	}
	for _, p := range common {
		for _, space := range n.spaces {
			var ln net.Listener
			if err := within(space, func() (err error) { ln, err = net.Listen("tcp4", local(p)); return err }); err != nil {
				n.close()
				return nil, fmt.Errorf("relay to port %d: %w", p, err)
			}
			n.relay(ln, relayed{clients, clients}, func() (net.Conn, error) {
				return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(n.life, "tcp4", local(p))
			})
		}
	}
	for to, ports := range served {
		for i, p := range ports {
			for from := clients; from < len(members); from++ {
				if from == to || from == clients && i >= forClients {
					continue
				}
				var ln net.Listener
				listen := func() (err error) { ln, err = net.Listen("tcp4", local(p)); return err }
				if from == clients {
					err = listen()
				} else {
					err = within(n.spaces[from], listen)
				}
				if err != nil {
					n.close()
					return nil, fmt.Errorf("relay to node %d: %w", to+1, err)
				}
				n.relay(ln, relayed{from, to}, func() (conn net.Conn, err error) {
					err = within(n.spaces[to], func() (err error) {
						conn, err = (&net.Dialer{Timeout: 10 * time.Second}).DialContext(n.life, "tcp4", local(p))
						return err
					})
					return conn, err
				})
			}
		}
	}
	return n, nil
}

// namespaceOf opens the network namespace that a process has beside ours.
func namespaceOf(pid int) (*os.File, error) {
	ours, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/ns/net", pid))
	for _, t := range tasks {
		if link, err := os.Readlink(t); err == nil && link != ours {
			return os.Open(t)
		}
	}
	return nil, errors.New("the supervisor is in none of its own")
}

// within runs do on a thread that is in a network namespace meanwhile: a socket
// belongs to the one that it was made in.
func within(space *os.File, do func() error) error {
	errs := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		here, err := os.Open("/proc/thread-self/ns/net")
		if err == nil {
			defer here.Close()
			err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil {
			runtime.UnlockOSThread()
			errs <- fmt.Errorf("enter a network namespace: %w", err)
			return
		}
		err = do()
		// A thread that does not get back ends with this goroutine.
		if unix.Setns(int(here.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		errs <- err
	}()
	return <-errs
}
