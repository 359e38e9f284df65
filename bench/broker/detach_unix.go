//go:build unix

package broker

import "syscall"

// detached keeps a child out of the reach of what is sent to our process group.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
