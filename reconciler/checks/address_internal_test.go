package checks

import (
	"net/http"
	"testing"
	"time"
)

// What a name resolves to is judged, too: who may point it elsewhere does not reach the machine, its
// neighbours on the link, or where a cloud hands out credentials.
func TestAddressesThatAreNeverDialled(t *testing.T) {
	for _, c := range []struct {
		name, address string
		allowed       bool
	}{
		{"orders.example.com", "203.0.113.7:443", true},
		{"orders.example.com", "10.96.0.10:443", true},
		{"orders.example.com", "[fd00::10]:443", true},
		{"orders.example.com", "169.254.169.254:80", false},
		{"orders.example.com", "[::ffff:169.254.169.254]:80", false},
		{"169.254.169.254", "169.254.169.254:80", false},
		{"orders.example.com", "[fe80::1%eth0]:80", false},
		{"orders.example.com", "[fd00:ec2::254]:80", false},
		{"orders.example.com", "100.100.100.200:80", false},
		{"orders.example.com", "224.0.0.1:80", false},
		{"orders.example.com", "0.0.0.0:80", false},
		{"orders.example.com", "[::]:80", false},
		{"orders.example.com", "127.0.0.1:80", false},
		{"orders.example.com", "[::1]:80", false},
		{"localhost", "127.0.0.1:80", true},
		{"localhost", "[::1]:80", true},
		{"127.0.0.1", "127.0.0.1:80", true},
		{"127.0.0.2", "127.0.0.1:80", false},
		{"::1", "[::1]:80", true},
		{"orders.example.com", "no address", false},
	} {
		if err := controlFor(c.name)("tcp", c.address, nil); (err == nil) != c.allowed {
			t.Errorf("%s at %s: %v", c.name, c.address, err)
		}
	}
}

// No proxy is asked, which could reach what quorate must not.
func TestNoProxyIsUsed(t *testing.T) {
	if transport, ok := New(nil, nil, time.Now).client.Transport.(*http.Transport); !ok || transport.Proxy != nil {
		t.Errorf("%+v", transport)
	}
}
