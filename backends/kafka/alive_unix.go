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
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		open = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && open
}
