package drift

import (
	"time"

	"github.com/quorate/quorate/reconciler/state"
)

// When an object that was refused is tried again: the time doubles with each try.
const (
	refusedFirst = 10 * time.Second
	refusedLast  = truceLast
)

// refusal is how often an object was not taken.
type refusal struct {
	problem, digest string
	tries           int
	since, last     time.Time
}

func (r refusal) until() time.Time {
	return r.last.Add(min(refusedFirst<<min(r.tries-1, 20), refusedLast))
}

// told is what rules see of it.
func (r refusal) told() *state.Refusal {
	return &state.Refusal{Problem: r.problem, Since: r.since, Until: r.until()}
}

// Refused notes that an object was not taken as it was applied; digest is that of the
// file. Other rules go on, and it is tried again later each time, and at once with another
// file.
func (f *Fights) Refused(cluster, object, problem, digest string, now time.Time) *state.Refusal {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refused == nil {
		f.refused = map[string]map[string]refusal{}
	}
	if f.refused[cluster] == nil {
		f.refused[cluster] = map[string]refusal{}
	}
	r, known := f.refused[cluster][object]
	if !known {
		r.since = now
	}
	if r.digest != digest {
		r.tries = 0
	}
	r.problem, r.digest, r.last, r.tries = problem, digest, now, r.tries+1
	f.refused[cluster][object] = r
	return r.told()
}

// Taken notes that an object was taken.
func (f *Fights) Taken(cluster, object string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.refused[cluster], object)
}

// Refusal is how an object was refused last as it is wanted now, nil where it was not.
func (f *Fights) Refusal(cluster, object string, digest string) *state.Refusal {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, known := f.refused[cluster][object]
	if !known || r.digest != digest {
		return nil
	}
	return r.told()
}
