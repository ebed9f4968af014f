package drift

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/reconciler/memo"
)

// Cache keeps the last comparison of each object of a cluster, by the
// versions of both sides. It saves work and decides nothing.
type Cache struct {
	// entries are never changed.
	entries memo.Map[map[string]driftEntry]
}

type driftEntry struct {
	versions Versions
	drift    Drift
}

// Versions are those of both sides of a comparison: the live object's, and all that the
// wanted one was made of, as a comparable value.
type Versions struct {
	UID             types.UID
	ResourceVersion string
	Wanted          any
}

// Get returns the kept comparison of exactly these two versions of an object.
func (c *Cache) Get(cluster, object string, versions Versions) (Drift, bool) {
	e, ok := c.entries.Get(cluster)[object]
	return e.drift, ok && e.versions == versions
}

// Put keeps a comparison in place of the object's last one.
func (c *Cache) Put(cluster, object string, versions Versions, d Drift) {
	c.entries.Change(cluster, func(entries map[string]driftEntry) map[string]driftEntry {
		entries = maps.Clone(entries)
		if entries == nil {
			entries = map[string]driftEntry{}
		}
		entries[object] = driftEntry{versions, d}
		return entries
	})
}

// Forget drops what is kept about a cluster.
func (c *Cache) Forget(cluster string) { c.entries.Forget(cluster) }

// Describe describes what differs and who did it.
func Describe(d Drift) string {
	text := strings.Join(d.Fields, ", ")
	if d.Manager == "" {
		return text
	}
	return fmt.Sprintf("%s, changed by %s", text, d.Manager)
}
