package restore

import "syscall"

// freeSpace is how many bytes a volume has room for.
func freeSpace(volume string) (int64, error) {
	var disk syscall.Statfs_t
	err := syscall.Statfs(volume, &disk)
	return int64(disk.Bavail) * disk.Bsize, err
}
