//go:build !unix

package broker

import "syscall"

func detached() *syscall.SysProcAttr { return nil }
