package reconciler

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// A file that says the same and has an error now, or none any more, is looked at.
func TestSameWish(t *testing.T) {
	good, other, bad := clustertest.InGit().Identified(), clustertest.InGit(clustertest.SetReplicas(5)).Identified(), clustertest.InGit().Identified()
	bad.Problems = []string{"bad"}
	if !desired.Same(good, good) || !desired.Same(bad, bad) || desired.Same(good, other) || desired.Same(good, bad) || desired.Same(bad, good) {
		t.Errorf("%s, %s, %s", good.Digest, other.Digest, bad.Digest)
	}
	from := func(url string) desired.Cluster {
		c := clustertest.InGit()
		c.Restore = &desired.Restore{Name: "back", Source: schema.RestoreSource{ObjectURL: url}}
		return c.Identified()
	}
	first, second := from("s3://b/1.db"), from("s3://b/2.db")
	if !desired.Same(first, from("s3://b/1.db")) || desired.Same(first, second) || desired.Same(first, good) {
		t.Errorf("with restores: %s, %s, without %s", first.Digest, second.Digest, good.Digest)
	}
}

func TestRepeatedStepsAreSlowedDown(t *testing.T) {
	var p pace
	var waits []time.Duration
	for range 4 {
		waits = append(waits, p.after("shop/orders", "apply Service orders-client"))
	}
	if want := []time.Duration{0, state.MinRequeue, 2 * state.MinRequeue, 4 * state.MinRequeue}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	for range 100 {
		p.after("shop/orders", "apply Service orders-client")
	}
	if w := p.after("shop/orders", "apply Service orders-client"); w != 5*time.Minute {
		t.Errorf("at last %s", w)
	}
	if w := p.after("shop/orders", "something else"); w != 0 {
		t.Errorf("another step waits %s", w)
	}
}

// A default takes the place of nothing that was set: neither of a limit nor of the
// lease.
func TestDefaultsOverrideNothing(t *testing.T) {
	other, noon := errors.New("another quorate acts"), time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	set := Options{
		Workers: 7, MaxDisrupted: 8, MaxBackups: 9, MaxDrills: 10, Resync: 11 * time.Second,
		Lease: func() error { return other }, Now: func() time.Time { return noon },
	}
	got := set.withDefaults()
	if !errors.Is(got.Lease(), other) || !got.Now().Equal(noon) {
		t.Errorf("lease %v, now %s", got.Lease(), got.Now())
	}
	if got.Workers != 7 || got.MaxDisrupted != 8 || got.MaxBackups != 9 || got.MaxDrills != 10 || got.Resync != 11*time.Second {
		t.Errorf("%+v", got)
	}
	if d := (Options{}).withDefaults(); d.Workers < 1 || d.MaxDisrupted != 1 || d.MaxBackups < 1 || d.MaxDrills < 1 || d.Resync <= 0 || d.Lease() != nil || d.Now().IsZero() {
		t.Errorf("the defaults: %+v", d)
	}
}
