package backuptest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Mute is a store that accepts connections, reads what it is sent and says nothing.
type Mute struct {
	// Address is where it listens.
	Address string

	mu                sync.Mutex
	asked, open, most int
}

// StartMute starts one that ends with the test.
func StartMute(t *testing.T) *Mute {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	m := &Mute{Address: listener.Addr().String()}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			m.count(1)
			go func() {
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
				m.count(-1)
			}()
		}
	}()
	return m
}

// count counts connections that begin and end.
func (m *Mute) count(by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open += by
	m.asked, m.most = m.asked+max(0, by), max(m.most, m.open)
}

// URL is the object URL of a key in a bucket there.
func (m *Mute) URL(key string) string {
	return "s3://backups/" + key + "?endpoint=http://" + m.Address + "&region=us-east-1"
}

// Asked is how many connections it has accepted.
func (m *Mute) Asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

// Most is how many it has had at once.
func (m *Mute) Most() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.most
}
