package drift

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Cache keeps the last comparison of each object of a cluster, by the
// versions of both sides. It saves work and decides nothing.
type Cache struct {
	mu      sync.Mutex
	entries map[string]map[string]driftEntry
}

type driftEntry struct {
	versions string
	drift    Drift
}

// Get returns the kept comparison of exactly these two versions of an object.
func (c *Cache) Get(cluster, object, versions string) (Drift, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[cluster][object]
	return e.drift, ok && e.versions == versions
}

// Put keeps a comparison in place of the object's last one.
func (c *Cache) Put(cluster, object, versions string, d Drift) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[string]map[string]driftEntry{}
	}
	if c.entries[cluster] == nil {
		c.entries[cluster] = map[string]driftEntry{}
	}
	c.entries[cluster][object] = driftEntry{versions, d}
}

// Forget drops what is kept about a cluster.
func (c *Cache) Forget(cluster string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, cluster)
}

// Describe says what differs and who did it.
func Describe(d Drift) string {
	text := strings.Join(d.Fields, ", ")
	if d.Manager == "" {
		return text
	}
	if d.Time.IsZero() {
		return fmt.Sprintf("%s (by %s)", text, d.Manager) // a subresource keeps no time
	}
	return fmt.Sprintf("%s (by %s at %s)", text, d.Manager, d.Time.UTC().Format(time.RFC3339))
}
