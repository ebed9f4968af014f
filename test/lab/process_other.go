//go:build !linux

package lab

import "syscall"

// ownGroup keeps a child from getting the terminal's signals.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
