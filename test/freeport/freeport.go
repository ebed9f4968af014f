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
const first, last = 15000, 29999

// next counts the ports tried. It starts anywhere, as the tests of several packages
// run at a time.
//
//nolint:gochecknoglobals // What one call returned, the next one must not.
var next = rand.Uint32N(last - first)

// At is an address at a host that nothing listened at a moment ago, and that no
// other call in this process has returned lately.
func At(host string) (string, error) {
	for range last - first {
		address := net.JoinHostPort(host, strconv.Itoa(first+int(atomic.AddUint32(&next, 1)%(last-first+1))))
		listener, err := net.Listen("tcp", address)
		if err == nil {
			return address, listener.Close()
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return "", fmt.Errorf("find a free port at %s: %w", host, err)
		}
	}
	return "", fmt.Errorf("find a free port at %s: all from %d to %d are in use", host, first, last)
}
