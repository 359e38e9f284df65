//go:build !linux

package node

import "syscall"

func guardAttr() *syscall.SysProcAttr { return nil }
