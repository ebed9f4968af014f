package plan

import "github.com/quorate/quorate/reconciler/plan/action"

// compact drops the history. The record knows of it last.
func (w *world) compact(a action.Compact, f fate) {
	if w.leader < 0 {
		return
	}
	w.compacted = max(w.compacted, int16(a.Revision))
	if f != half {
		w.record.compacted, w.record.compactedAt, w.record.trimmed = int16(a.Revision), w.clock, [most]bool{}
	}
}

// defragment rewrites a database. It keeps what it holds: keys, and history
// that was not dropped.
func (w *world) defragment(i int8) {
	if i < 0 || !w.runs(i) {
		return
	}
	c := &w.claims[i]
	if c.laden && w.compacted == w.revision && !w.heavy {
		c.laden = false
	}
	c.full = c.full && c.laden
	w.record.trimmed[i] = true
}

// write is a write of a user's.
func (w *world) write() { w.revision, w.told = min(w.revision+1, 1000), w.compacted }

// full reports whether the database of a member that runs is at its quota.
func (w *world) full(i int8) bool {
	return w.claims[i].full && w.runs(i) && !variants[w.pods[i].template].roomy
}

// disarm ends the alarm, unless a member raises it again, and then there are
// writes again.
func (w *world) disarm() {
	w.alarm = false
	for i := range w.claims {
		w.alarm = w.alarm || w.full(int8(i))
	}
	if !w.alarm {
		w.write()
	}
}
