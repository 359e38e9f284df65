//go:build !linux

package trial

import "syscall"

func guardAttr() *syscall.SysProcAttr { return nil }
