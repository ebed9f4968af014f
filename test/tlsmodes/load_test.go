package tlsmodes

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/test/lab"
)

// load is a client that writes and reads in a mode, and one that watches that.
type load struct {
	*lab.Writer
	prefix string
	acked  int
	// seen is how many puts were watched.
	seen atomic.Int64
}

// begin begins a load in a mode that all members take.
func (c *cluster) begin(mode, prefix string) *load {
	c.Helper()
	l := &load{prefix: prefix, Writer: lab.StartWriter(c.dial(mode, c.members...), lab.WriterOptions{Prefix: prefix})}
	c.Cleanup(l.Close)
	watcher := c.dial(mode, c.members...)
	c.Cleanup(func() { _ = watcher.Close() })
	go func() {
		for w := range watcher.Watch(c.Context(), prefix, clientv3.WithPrefix(), clientv3.WithRev(1)) {
			l.seen.Add(int64(len(w.Events)))
		}
	}()
	c.eventually("write", func() error {
		if n := l.Report().Writes.OK; n < 20 {
			return fmt.Errorf("%d writes", n)
		}
		return nil
	})
	return l
}

// finish ends a load, and wants each acknowledged write to be there and to have been watched, while
// the mode is still spoken.
func (c *cluster) finish(l *load) {
	c.Helper()
	seen := l.Stop()
	l.acked = seen.Writes.OK
	if n, err := l.Verify(c.Context()); err != nil || n < l.acked {
		c.Errorf("%s: %d of %d acknowledged writes are there: %v", l.prefix, n, l.acked, err)
	}
	c.eventually("watch all of "+l.prefix, func() error {
		if n := l.seen.Load(); n < int64(l.acked) {
			return fmt.Errorf("%d of %d writes were watched", n, l.acked)
		}
		return nil
	})
	c.Logf("%s writes: %s; reads: %s", l.prefix, seen.Writes, seen.Reads)
}

// expectAll wants the acknowledged writes of loads that have ended to be there in the other mode.
func (c *cluster) expectAll(mode string, loads ...*load) {
	c.Helper()
	client := c.dial(mode, c.members...)
	defer func() { _ = client.Close() }()
	for _, l := range loads {
		found, err := client.Get(c.Context(), l.prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		c.must(err)
		if found.Count < int64(l.acked) {
			c.Errorf("%s: %d of %d acknowledged writes are there in the end", l.prefix, found.Count, l.acked)
		}
	}
}

// expectPorts wants the client port of each member to serve the modes that it listens to, and no
// other: by gRPC, by its gateway and by what probes and Prometheus ask.
func (c *cluster) expectPorts() {
	c.Helper()
	for _, m := range c.members {
		for _, mode := range []string{plain, secure} {
			want := slices.Contains(m.how.clients(), mode)
			if err := c.get(m, mode); (err == nil) != want {
				c.Errorf("%s, %s, by gRPC and %s: %v", m.name, m.how, mode, err)
			}
			for _, path := range []string{"/health", "/version", "/metrics", "/v3/maintenance/status"} {
				if err := c.http(m, mode, path, c.certificate()); (err == nil) != want {
					c.Errorf("%s, %s, by %s at %s: %v", m.name, m.how, mode, path, err)
				}
			}
		}
		if err := c.http(m, secure, "/health", &tls.Config{InsecureSkipVerify: true}); err == nil {
			c.Errorf("%s, %s, takes a client without a certificate", m.name, m.how)
		}
	}
}

// get reads through one member, in a mode.
func (c *cluster) get(m *member, mode string) error {
	limit := patience
	if !slices.Contains(m.how.clients(), mode) {
		limit = 300 * time.Millisecond // the client tries until then
	}
	ctx, cancel := context.WithTimeout(c.Context(), limit)
	defer cancel()
	client := c.dial(mode, m)
	defer func() { _ = client.Close() }()
	_, err := client.Get(ctx, "any")
	return err
}

// http asks at a path of the client port.
func (c *cluster) http(m *member, mode, path string, config *tls.Config) error {
	method := http.MethodGet
	if strings.HasPrefix(path, "/v3/") {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(c.Context(), method, m.url(peerURL{mode, clientPort})+path, strings.NewReader("{}"))
	c.must(err)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: patience}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || len(text) == 0 || path == "/health" && !bytes.Contains(text, []byte("true"))) {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return err
}

// expectLeases wants each member to renew a lease, and to say how long it lasts: followers ask the
// leader both, where the list has it.
func (c *cluster) expectLeases() {
	c.Helper()
	var lease *clientv3.LeaseGrantResponse
	for _, m := range c.members {
		c.ask(m, func(ctx context.Context, client *clientv3.Client) (err error) {
			if lease == nil {
				lease, err = client.Grant(ctx, 60)
			}
			if err == nil {
				_, err = client.KeepAliveOnce(ctx, lease.ID)
			}
			if err == nil {
				_, err = client.TimeToLive(ctx, lease.ID)
			}
			return err
		})
	}
}
