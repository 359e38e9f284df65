//go:build unix

package kafka

import (
	"errors"
	"net"
	"syscall"
)

// alive reports whether the broker has left the connection open, without
// waiting. There is no request under way, so whatever can be read is its end.
func (w *wire) alive() bool {
	tcp, ok := w.Conn.(*net.TCPConn)
	if !ok {
		return true
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	open := false
	// Not raw.Read: franz-go may be reading, and that would wait for it.
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open = errors.Is(err, syscall.EAGAIN)
	})
	return err == nil && open
}
