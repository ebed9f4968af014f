package follow

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/schema"
)

// many are n clusters.
func many(n int) map[string]desired.Origin {
	m := map[string]desired.Origin{}
	for i := range n {
		o := desired.Origin{Namespace: "shop", Name: fmt.Sprintf("c%02d", i), File: "clusters/all.yaml", Version: "3.6.16", Image: "{}", Security: "null", Storage: `{"size":"8Gi"}`}
		m[o.Key()] = o
	}
	return m
}

// with changes some of many.
func with(m map[string]desired.Origin, from, to int, change func(*desired.Origin)) map[string]desired.Origin {
	for i := from; i < to; i++ {
		key := fmt.Sprintf("shop/c%02d", i)
		o := m[key]
		if change == nil {
			delete(m, key)
			continue
		}
		change(&o)
		m[key] = o
	}
	return m
}

// 134: when more than N or P percent of the clusters vanish or change at once,
// nothing does.
func TestMassChange(t *testing.T) {
	version := func(o *desired.Origin) { o.Version = "3.6.17" }
	deleted := func(o *desired.Origin) { o.State = schema.StateDeleted }
	renamed := func(o *desired.Origin) { o.File = "elsewhere.yaml" }
	running := func(o *desired.Origin) { o.State = schema.StateRunning }
	hibernated := func(o *desired.Origin) { o.State = schema.StateHibernated }
	image := func(o *desired.Origin) { o.Image = `{"repository":"registry.example.com/etcd"}` }
	security := func(o *desired.Origin) { o.Security = `{"runAsUser":0}` }
	storage := func(o *desired.Origin) { o.Storage = `{"size":"16Gi"}` }
	usual := Limits{Clusters: 10, Percent: 50}
	for _, tc := range []struct {
		name    string
		of      int
		after   func(map[string]desired.Origin) map[string]desired.Origin
		limits  Limits
		changes int
		tooMany bool
	}{
		{"nothing", 20, func(m map[string]desired.Origin) map[string]desired.Origin { return m }, usual, 0, false},
		{"the only one", 1, func(m map[string]desired.Origin) map[string]desired.Origin { return with(m, 0, 1, version) }, usual, 1, false},
		{"the only two", 2, func(m map[string]desired.Origin) map[string]desired.Origin { return with(m, 0, 2, nil) }, usual, 2, false},
		{"three of four", 4, func(m map[string]desired.Origin) map[string]desired.Origin { return with(m, 0, 3, version) }, usual, 3, true},
		{"half", 6, func(m map[string]desired.Origin) map[string]desired.Origin { return with(m, 0, 3, version) }, usual, 3, false},
		{"ten of many", 90, func(m map[string]desired.Origin) map[string]desired.Origin { return with(m, 0, 10, deleted) }, usual, 10, false},
		{"eleven of many", 90, func(m map[string]desired.Origin) map[string]desired.Origin { return with(m, 0, 11, deleted) }, usual, 11, true},
		{"an emptied directory", 5, func(map[string]desired.Origin) map[string]desired.Origin { return nil }, usual, 5, true},
		{"99 of 100", 100, func(m map[string]desired.Origin) map[string]desired.Origin { return with(m, 0, 99, nil) }, usual, 99, true},
		{"each kind a little", 90, func(m map[string]desired.Origin) map[string]desired.Origin {
			return with(with(with(m, 0, 4, nil), 4, 8, deleted), 8, 12, version)
		}, usual, 12, true},
		{"each part a little", 90, func(m map[string]desired.Origin) map[string]desired.Origin {
			return with(with(with(with(m, 0, 3, image), 3, 6, security), 6, 9, storage), 9, 12, hibernated)
		}, usual, 12, true},
		{"each part of the same ones", 90, func(m map[string]desired.Origin) map[string]desired.Origin {
			return with(with(with(with(m, 0, 3, image), 0, 3, security), 0, 3, storage), 0, 3, hibernated)
		}, usual, 3, false},
		{"all run again", 90, func(m map[string]desired.Origin) map[string]desired.Origin { return with(m, 0, 90, running) }, usual, 0, false},
		{"all renamed", 90, func(m map[string]desired.Origin) map[string]desired.Origin { return with(m, 0, 90, renamed) }, usual, 0, false},
		{"more of them", 3, func(map[string]desired.Origin) map[string]desired.Origin { return many(80) }, usual, 0, false},
		{"no percentage", 10, func(m map[string]desired.Origin) map[string]desired.Origin { return with(m, 0, 9, version) }, Limits{Clusters: 10}, 9, false},
		{"no number", 90, func(m map[string]desired.Origin) map[string]desired.Origin { return with(m, 0, 40, version) }, Limits{Percent: 50}, 40, false},
		{"no limit", 90, func(map[string]desired.Origin) map[string]desired.Origin { return nil }, Limits{}, 90, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			changes, tooMany := changedClusters(many(tc.of), tc.after(many(tc.of)), tc.limits)
			if len(changes) != tc.changes || tooMany != tc.tooMany {
				t.Errorf("%d changes, too many %t; want %d, %t: %q", len(changes), tooMany, tc.changes, tc.tooMany, changes)
			}
		})
	}
	// What was deleted already may go; the list names what changes how.
	before := with(many(3), 0, 1, deleted)
	after := with(with(many(3), 0, 1, nil), 1, 2, version)
	delete(after, "shop/c02")
	if got, _ := changedClusters(before, after, usual); !slices.Equal(got, []string{"shop/c01 3.6.16 → 3.6.17", "shop/c02 removed"}) {
		t.Errorf("got %q", got)
	}
	if got, _ := changedClusters(many(1), with(with(many(1), 0, 1, version), 0, 1, storage), usual); !slices.Equal(got, []string{"shop/c00 3.6.16 → 3.6.17 and storage"}) {
		t.Errorf("got %q", got)
	}
	asleep := with(many(90), 0, 90, hibernated)
	if got, _ := changedClusters(asleep, asleep, usual); got != nil {
		t.Errorf("what is hibernated already: %q", got)
	}
	// What an older quorate stored says nothing of images and the like.
	older := with(many(90), 0, 90, func(o *desired.Origin) { o.Image, o.Security, o.Storage = "", "", "" })
	if got, _ := changedClusters(older, many(90), usual); got != nil {
		t.Errorf("after an upgrade of quorate: %q", got)
	}
}
