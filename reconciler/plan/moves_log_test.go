package plan

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
)

// writeLogs is what a release before 3.6 does to everybody's log: entries that 3.7
// cannot read.
func (w *world) writeLogs() {
	old := false
	for i := range w.pods {
		old = old || (w.runs(int8(i)) && variants[w.pods[i].template].minor < 6)
	}
	if !old {
		return
	}
	for i := range w.claims {
		if w.runs(int8(i)) {
			w.claims[i].raw = true
		}
	}
}

// catchUp gives a member what the leader has.
func (w *world) catchUp(i int8) string {
	c := &w.claims[i]
	c.behind, c.short, c.raw = false, false, c.raw || w.claims[w.leader].raw
	if c.raw && variants[w.pods[i].template].minor > 6 && !w.reformed() {
		return fmt.Sprintf("I14: member %d runs etcd 3.7 and gets entries of 3.5", i)
	}
	w.commit()
	return ""
}

// reformed reports whether what could not form was started over. A pod of it may come up
// all the same, before it is seen to, and write what the others cannot read: they may not
// form again then, and nobody has anything in them.
func (w *world) reformed() bool { return !w.record.formed && w.set.template != w.set.current }

// nudge writes down how often each member has saved its state, which all have to
// say, and adds to the log.
func (w *world) nudge(a action.ForceSnapshot, f fate) {
	r := &w.record
	n := fakeNudged{there: true, template: variantOf(a.Template), since: w.clock, last: w.clock}
	for i, id := range r.members {
		if id != 0 && !w.runs(int8(i)) {
			return
		}
		n.before[i] = w.pods[i].saved
	}
	if r.nudged.there && r.nudged.template == n.template {
		n.since = r.nudged.since
	}
	r.nudged = n
	if f == half || w.leader < 0 {
		return
	}
	for i := range w.pods {
		p := &w.pods[i]
		p.pending = w.runs(int8(i)) && variants[p.template].flush && p.saved < 100
	}
}

// recordFlushed notes which logs are clean.
func (w *world) recordFlushed(a action.RecordFlushed) {
	w.record.flushed, w.record.nudged = [most]int8{}, fakeNudged{}
	w.record.bornOn = int8(slices.Index(lineText, a.BornOn))
	for name, id := range a.Members {
		w.record.flushed[ordinal8(name)] = idOf(id)
	}
}

// variantOf is the variant that a template is made of.
func variantOf(template string) int8 {
	for v, name := range templates {
		if name == template {
			return int8(v)
		}
	}
	panic("no such template: " + template)
}

// stopsOf are the stops on any way to what Git says, with their templates.
func stopsOf(asked int8) []state.Waypoint {
	var stops []state.Waypoint
	for _, v := range []int8{v35, v36, v36Flush, v37} {
		if it := variants[v]; it.version != variants[asked].version || it.flush {
			stops = append(stops, state.Waypoint{Version: it.version, Flush: it.flush, Template: templates[v]})
		}
	}
	return stops
}
