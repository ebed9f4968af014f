package lab

import "syscall"

// ownGroup keeps a child from getting the terminal's signals, and ends it with
// this process however this process ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
