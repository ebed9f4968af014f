package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/plan/action"
)

// call is what an action asks of Kubernetes or etcd, on its way: nobody waits for it any
// more, and it takes effect all the same.
type call struct {
	action action.Action
	// then is the world as it was read for it, and due the template of that time.
	then world
	due  string
	// exclusive: the budget was to keep every pod then.
	exclusive bool
	// The StatefulSet, or the record, has been another one since, and no later version of it
	// is the one that was read.
	setChanged, recordChanged bool
	// left is how many events it is still on its way.
	left int
}

// arrivals lets the calls take effect that were long enough on their way.
func (p *played) arrivals() string {
	calls := p.e.calls
	p.e.calls = nil
	for _, c := range calls {
		c.setChanged = c.setChanged || p.w.set != c.then.set
		c.recordChanged = c.recordChanged || p.w.record != c.then.record
		if c.left--; c.left > 0 {
			p.e.calls = append(p.e.calls, c)
			continue
		}
		p.tell(fmt.Sprintf("what was on its way arrives: %s", c.action))
		if broken := p.e.arrive(&p.w, c); broken != "" {
			return broken
		}
	}
	return ""
}

// arrive is what the API server and etcd make of a call that comes late. What is written
// depends on the version that was read, a pod and a claim go by their UIDs, and etcd compares
// the IDs and its own list; all else that quorate has looked at may be another by now.
func (e *engine) arrive(w *world, c call) string {
	before := *w
	e.due, e.exclusive = c.due, c.exclusive
	switch a := c.action.(type) {
	case action.MoveLeader:
		e.moveLeader(w, a)
	case action.AddLearner:
		w.addLate(ordinal8(a.Member))
	case action.PromoteMember:
		if i := w.seated(a.ID); i >= 0 && w.leader >= 0 && w.runs(i) && !w.claims[i].behind {
			w.seats[i].learner = false
		}
	case action.RemoveMember:
		if i := w.seated(a.ID); i >= 0 && w.leader >= 0 {
			if voters, well := w.votesWithout(i); well >= voters/2+1 {
				w.unseat(i)
			}
		}
	case action.DropLearner:
		if i := ordinal8(a.Member); a.ID != "" && w.leader >= 0 && w.seats[i].learner && memberIDs[w.seats[i].id] == a.ID {
			w.unseat(i)
		}
	case action.DeletePod:
		e.stop(w, ordinal8(a.Member), a.PodUID)
	case action.DeleteVolume:
		i := ordinal8(a.Member)
		if w.releaseClaim(i, a.UID); *w != before && !c.then.record.deleted && before.seats[i].id != 0 && before.claims[i].data == before.seats[i].id {
			return fmt.Sprintf("I6: deletes the volume of member %d, which came to be one meanwhile", i)
		}
		return "" // Git may have changed its mind
	case action.RestartMember:
		if a.ByDeletion {
			e.stop(w, int8(a.Ordinal), a.PodUID)
			break
		}
		e.write(w, c, !c.setChanged && w.set == c.then.set)
	case action.StartRoll, action.EndRoll, action.ResizeSet, action.ReleaseSet, action.CreateSet:
		e.write(w, c, !c.setChanged && w.set == c.then.set)
	default:
		e.write(w, c, !c.recordChanged && w.record == c.then.record)
	}
	return e.judgeAfter(&before, w, c.action)
}

// write lets an object be written, where it is as it was read.
func (e *engine) write(w *world, c call, unchanged bool) {
	if unchanged || e.hand.unversioned {
		asks := w.ask
		w.ask = c.then.ask // what is written is what Git said then
		e.execute(w, c.action, done)
		w.ask = asks
	}
}

// addLate adds a learner, as etcd does: one at a time, and each address once.
func (w *world) addLate(i int8) {
	for _, s := range w.seats {
		if s.learner {
			return
		}
	}
	if w.leader < 0 || w.seats[i].id != 0 || w.ids > 100 {
		return
	}
	w.ids++
	w.seats[i] = seat{id: w.ids, learner: true}
}

// stop deletes the pod with a UID.
func (e *engine) stop(w *world, i int8, uid string) {
	if p := &w.pods[i]; p.state != podAbsent && p.state != podStopping && (podUID(p.uid) == uid || e.hand.careless) {
		p.served, p.state = p.state == podUp, podStopping
	}
}

// releaseClaim deletes the claim with a UID.
func (w *world) releaseClaim(i int8, uid string) {
	c := &w.claims[i]
	switch {
	case !c.there || c.terminating || podUID(c.uid) != uid:
	case w.pods[i].state == podAbsent:
		*c = fakeClaim{}
	default:
		c.terminating = true
	}
}

// restartLost is a world in the midst of a roll, in which quorate has given up to wait for the
// answer to its first restart, and that restart.
func restartLost(t *testing.T, runs, rolls int8) (*engine, world, call) {
	e, w := newEngine(table()), runningWorld(3, runs).asking(rolls)
	w.record.bornOn = min(6, variants[runs].minor)
	for range patience {
		_, trouble := e.proceed(&w, 0)
		s, f := w, done
		if v := e.decide(&s, plainly(&s), s.clock); v.Step != nil && v.Step.Action.Kind() == (action.RestartMember{}).Kind() {
			f = late
		}
		if _, broken := e.pass(&w, plainly(&s), f); trouble != "" || broken != "" {
			t.Fatal(trouble, broken)
		}
		if len(e.calls) > 0 {
			return e, w, e.calls[0]
		}
	}
	t.Fatal("no member is restarted")
	return nil, w, call{}
}

// goOn lets happen what happens on its own before quorate looks again, in the order in which it
// is named, or in the opposite one.
func (e *engine) goOn(w *world, backwards bool) string {
	for range 20 {
		e.moves = w.moves(e.moves[:0])
		own := slices.DeleteFunc(e.moves, move.fault)
		if len(own) == 0 {
			break
		}
		m := own[0]
		if backwards {
			m = own[len(own)-1]
		}
		if broken := w.apply(m); broken != "" {
			return broken
		}
	}
	return ""
}

// arrivesNow lets a call arrive, what follows from that go on before quorate looks again, and
// the world come to rest.
func (e *engine) arrivesNow(w world, lost call) string {
	for _, backwards := range []bool{false, true} {
		late := w
		if broken := cmp.Or(e.arrive(&late, lost), e.goOn(&late, backwards), e.settle(&late)); broken != "" {
			return broken
		}
	}
	return ""
}

// 413: a restart that quorate has given up may arrive whenever it likes: etcd takes what the
// member then starts with, also where Git has changed its mind meanwhile.
func TestARestartMayArriveLate(t *testing.T) {
	for _, c := range []struct {
		name              string
		runs, rolls, then int8
	}{
		{"nobody changes anything", v36, v37, v37},
		{"up, and taken back", v36, v37, v36},
		{"up, and down instead", v36, v37, v35},
		{"settings, and down instead", v36, v36Tuned, v35},
		{"down, and taken back", v36, v35, v36},
		{"down, and taken back with other settings", v36, v35, v36Tuned},
		{"down, and up instead", v36, v35, v37},
		{"down, and another patch", v36, v35, v35Old},
		{"down from 3.7, and taken back", v37, v36, v37},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, w, lost := restartLost(t, c.runs, c.rolls)
			w.ask.variant = c.then
			var story []string
			for range patience {
				if broken := e.arrivesNow(w, lost); broken != "" {
					t.Fatalf("%s\n\t%s\n\tit arrives", broken, strings.Join(story, "\n\t"))
				}
				moved, trouble := e.proceed(&w, 0)
				before := w
				v, broken := e.pass(&w, plainly(&before), done)
				if trouble != "" || broken != "" {
					t.Fatal(trouble, broken)
				}
				if v.Step != nil {
					story = append(story, v.Step.Action.String())
				} else if !moved && v.Hold == nil {
					return
				}
			}
			t.Fatal("it does not come to rest")
		})
	}
}
