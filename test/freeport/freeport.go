// Package freeport finds ports for the servers of tests.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"syscall"
)

// The ports of servers are below those that a kernel gives to connections (from
// 32768 on Linux, from 49152 elsewhere): one of these may be taken before the
// server listens, or while it is restarted. They are below the node ports of
// Kubernetes, too.
const first, count = 15000, 15000

// next counts the ports tried. It starts anywhere, as the tests of several packages
// run at a time.
//
//nolint:gochecknoglobals // What one call returned, the next one must not.
var next = rand.Uint32N(count)

// At is an address at a host that nothing listened at a moment ago, and that no
// other call in this process has returned lately.
func At(host string) (string, error) {
	for range count {
		address := net.JoinHostPort(host, strconv.Itoa(first+int(atomic.AddUint32(&next, 1)%count)))
		listener, err := net.Listen("tcp", address)
		if err == nil {
			return address, listener.Close()
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return "", fmt.Errorf("find a free port at %s: %w", host, err)
		}
	}
	return "", fmt.Errorf("find a free port at %s: all %d from %d on are in use", host, count, first)
}
