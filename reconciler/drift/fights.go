package drift

import (
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/reconciler/state"
)

// When a field counts as fought about, and how long it is then left alone: the
// time doubles with each try.
const (
	fightTries  = 3
	fightWithin = 10 * time.Minute
	TruceFirst  = time.Minute
	truceLast   = 16 * time.Minute
)

// Fights counts how often the same field was taken back from the same manager. It
// is a rate limit and nothing else: a process that has lost it puts the field back
// a few times more, and then waits again.
type Fights struct {
	mu      sync.Mutex
	entries map[string]map[foughtField]*fightState
}

// foughtField is what is fought about, and with whom.
type foughtField struct{ object, manager, fields string }

// fightState is how often it was put back, and when.
type fightState struct {
	// recent are the times within fightWithin, while there is no fight yet.
	recent []time.Time
	// tries counts in a fight; 0 means that there is none.
	tries int
	last  time.Time
}

func fieldOf(object string, d Drift) foughtField {
	return foughtField{object, d.Manager, strings.Join(d.Fields, ", ")}
}

// Corrected notes that the drift of an object was taken back from its manager.
func (f *Fights) Corrected(cluster, object string, d Drift, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.entries == nil {
		f.entries = map[string]map[foughtField]*fightState{}
	}
	if f.entries[cluster] == nil {
		f.entries[cluster] = map[foughtField]*fightState{}
	}
	for field, s := range f.entries[cluster] {
		if s.over(now) {
			delete(f.entries[cluster], field)
		}
	}
	field := fieldOf(object, d)
	s := f.entries[cluster][field]
	if s == nil {
		s = &fightState{}
		f.entries[cluster][field] = s
	}
	s.again(now)
}

// Find is the fight about the drift of an object, nil when there is none.
func (f *Fights) Find(cluster, object string, d Drift) *state.Fight {
	f.mu.Lock()
	defer f.mu.Unlock()
	field := fieldOf(object, d)
	s := f.entries[cluster][field]
	if s == nil || s.tries == 0 {
		return nil
	}
	return &state.Fight{Manager: field.manager, Fields: field.fields, Times: s.tries, Until: s.last.Add(s.truce())}
}

// Forget drops what is kept about a cluster.
func (f *Fights) Forget(cluster string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.entries, cluster)
}

// again counts one more try.
func (s *fightState) again(now time.Time) {
	s.last = now
	if s.tries > 0 {
		s.tries++
		return
	}
	var recent []time.Time
	for _, t := range append(s.recent, now) {
		if now.Sub(t) < fightWithin {
			recent = append(recent, t)
		}
	}
	s.recent = recent
	if len(recent) >= fightTries {
		s.tries = len(recent)
	}
}

// truce is how long the field is left alone after the last try.
func (s *fightState) truce() time.Duration {
	truce := TruceFirst
	for n := fightTries; n < s.tries && truce < truceLast; n++ {
		truce *= 2
	}
	return truce
}

// over reports whether there has been peace for so long that the next change is no
// fight.
func (s *fightState) over(now time.Time) bool { return now.Sub(s.last) > s.truce()+fightWithin }
