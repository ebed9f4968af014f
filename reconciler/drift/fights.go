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
	refused map[string]map[string]refusal
}

// foughtField is what is fought about, and with whom: "" is the admission of the API server,
// and wanted then tells apart what was applied in vain.
type foughtField struct{ object, manager, fields, wanted string }

// fightState is how often it was put back, and when.
type fightState struct {
	// recent are the times within fightWithin, while there is no fight yet.
	recent []time.Time
	// tries counts in a fight; 0 means that there is none.
	tries int
	last  time.Time
	// sure says that the answer to an apply has shown it.
	sure bool
}

func fieldOf(object string, d Drift) foughtField {
	field := foughtField{object: object, manager: d.Manager, fields: strings.Join(d.Fields, ", ")}
	if d.Manager == "" {
		field.wanted = d.wanted
	}
	return field
}

// Corrected notes that the drift of an object was taken back from its manager.
func (f *Fights) Corrected(cluster, object string, d Drift, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entry(cluster, fieldOf(object, d), now).again(now)
}

// Answered notes what the API server made of an object as quorate applied it. What differs
// in its own answer was changed by its admission, and will be next time.
func (f *Fights) Answered(cluster, object string, d Drift, now time.Time) {
	if d.Empty() || d.Manager != "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entry(cluster, fieldOf(object, d), now).inVain(now)
}

// entry is the state of a field, new where there is none, or peace for long.
func (f *Fights) entry(cluster string, field foughtField, now time.Time) *fightState {
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
	s := f.entries[cluster][field]
	if s == nil {
		s = &fightState{}
		f.entries[cluster][field] = s
	}
	return s
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
	fight := &state.Fight{Manager: field.manager, Fields: field.fields, Times: s.tries, Until: s.last.Add(s.truce())}
	if fight.ByAdmission() {
		fight.Fields = strings.Join(Texts(d.Changes), ", ")
	}
	return fight
}

// Forget drops what is kept about a cluster.
func (f *Fights) Forget(cluster string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.entries, cluster)
	delete(f.refused, cluster)
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

// inVain counts one more apply that admission undid in the same moment: one is enough to
// know.
func (s *fightState) inVain(now time.Time) {
	s.last, s.sure = now, true
	s.tries++
}

// truce is how long the field is left alone after the last try.
func (s *fightState) truce() time.Duration {
	truce := TruceFirst
	first := fightTries
	if s.sure {
		first = 1
	}
	for n := first; n < s.tries && truce < truceLast; n++ {
		truce *= 2
	}
	return truce
}

// over reports whether there has been peace for so long that the next change is no
// fight.
func (s *fightState) over(now time.Time) bool { return now.Sub(s.last) > s.truce()+fightWithin }
