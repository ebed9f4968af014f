package freeport

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

// A port that the kernel may give to a connection at any moment is not free for the
// server that is started a moment later, or restarted.
func TestPortsAreNoneOfConnections(t *testing.T) {
	ephemeral := 32768
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if ephemeral, err = strconv.Atoi(strings.Fields(string(text))[0]); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for range 1000 {
		address, err := At("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		_, text, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		if port, err := strconv.Atoi(text); err != nil || port >= ephemeral || seen[text] {
			t.Fatalf("%s was returned before (%v), or is a port of connections (from %d), %v", address, seen[text], ephemeral, err)
		}
		seen[text] = true
	}
}

func TestPortInUseIsPassedOver(t *testing.T) {
	before := next
	taken, err := At("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", taken)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	next = before
	if address, err := At("127.0.0.1"); err != nil || address == taken {
		t.Fatalf("%s is in use; the next port is %s, %v", taken, address, err)
	}
}

func TestUnknownHost(t *testing.T) {
	if address, err := At("203.0.113.1"); err == nil || !strings.Contains(err.Error(), "find a free port at 203.0.113.1") {
		t.Fatalf("%s, %v", address, err)
	}
}
