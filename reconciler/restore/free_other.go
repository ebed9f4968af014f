//go:build !linux

package restore

import "errors"

// freeSpace is not known: volumes are restored in pods, which run Linux. What is built for
// other systems is quorate for people's machines.
func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }
