package reconciler

import (
	"maps"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/memo"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/state"
)

const (
	// memory is how long a try is remembered: what was tried so long ago counts from the first again.
	memory = 2 * queue.MaxRetry
	// maxDoubt is the longest time between two confirmations that find the same reason to
	// do nothing, unless the members' data was compared: that stops each of them for a
	// while, and at least share times as long passes before it is done again.
	maxDoubt = 30 * time.Second
	share    = 10
	// maxUndone is the longest time between two steps of the same sort that bring members
	// back which another writer takes away each time.
	maxUndone = 2 * time.Second
)

// pace slows down what fails, and what does not last because something undoes it each
// time, whatever wakes the cluster: often it is the failed step itself, by what it writes.
// Another step of the same cluster need not wait, and another wish in Git ends every wait.
// It decides when to try again, never what: a process that starts again tries at once.
type pace struct{ clusters memo.Map[map[string]try] }

// try is how something was tried, several times in a row.
type try struct {
	// wish is what Git wanted.
	wish  string
	times int
	// since is when it was tried first, at when last, and until for how long it waits.
	since, at, until time.Time
	// problem is what it failed with, "" for a success, and otherwise what a commit can say
	// that does without it.
	problem, otherwise string
	// done is the step that went well, "" for a failure or a confirmation.
	done string
}

// often reports whether it was tried more often than a blip explains.
func (t try) often() bool { return t.times >= queue.MaxSilentConflicts }

// wait is how long it waits in all.
func (t try) wait() time.Duration { return t.until.Sub(t.at) }

// The names of what is tried. Members, revisions and times are no part of what fails: it
// fails as well for the next one.
func failing(s decision.Step) string {
	return "failing " + s.Action.Kind() + " " + report.WithoutNumbers(s.Action.String())
}

// doubts begin the names of confirmations.
const doubts = "confirming "

// doubt is a confirmation.
type doubt struct {
	name string
	// compared says that the members' data was compared.
	compared bool
	took     time.Duration
}

// lastings begin the names of steps that went well.
const lastings = "lasting "

func lasting(s decision.Step) string { return lastings + s.Steady() }

// confirming is the confirmation that a plan asks for, by what it is asked for; "" for
// none, or nobody to ask.
func confirming(v *observe.View, p decision.Plan) string {
	if p.Hold == nil || p.Hold.Kind != decision.Confirm || len(v.Endpoints) == 0 {
		return ""
	}
	name := doubts + p.Hold.Rule
	if p.Hold.Compare {
		name += " by the data"
	}
	if p.Hold.Places {
		name += " by the nodes"
	}
	if len(p.Steps) > 0 {
		name += " " + failing(p.Steps[0])
	}
	return name
}

// left is how long the last try of any of the names has to wait yet, and that try.
func (p *pace) left(c desired.Cluster, names ...string) (last try, left time.Duration) {
	tries := p.clusters.Get(c.Key())
	for _, name := range names {
		if t := tries[name]; t.wish == c.Digest && time.Until(t.until) > left {
			last, left = t, time.Until(t.until)
		}
	}
	return last, left
}

// failed notes a step that failed, and the confirmations that it rested on: all wait.
func (p *pace) failed(c desired.Cluster, s decision.Step, confirmed []doubt, problem error) (last try) {
	p.note(c, func(tries map[string]try) {
		last = again(c, tries[failing(s)])
		last.otherwise = s.Otherwise
		last.problem, last.until = problem.Error(), last.at.Add(queue.BackOff(state.MinRequeue, last.times))
		tries[failing(s)] = last
		for _, d := range confirmed {
			tries[d.name] = last
		}
	})
	return last
}

// begins reports whether a step writes down why a member is to come or to leave: what
// follows it brings that to its end.
func begins(s decision.Step) bool {
	_, joins := s.Action.(action.BeginJoin)
	_, leaves := s.Action.(action.BeginLeave)
	return joins || leaves
}

// done notes a step that went well, and that waits before it is taken again where it was
// taken before. Where members come or leave for a reason that is new, such as a node that
// is drained, the steps before count from the first again: they are due once more for that
// reason, and not because they did not last.
func (p *pace) done(c desired.Cluster, s decision.Step, confirmed []doubt) (last try) {
	p.note(c, func(tries map[string]try) {
		delete(tries, failing(s))
		for _, d := range confirmed {
			delete(tries, d.name)
		}
		before, known := tries[lasting(s)]
		if begins(s) && (!known || before.wish != c.Digest) {
			startAfresh(tries)
		}
		last = again(c, before)
		var wait time.Duration
		if last.times > 1 {
			wait = queue.BackOff(state.MinRequeue, last.times-1)
		}
		if s.AtOnce {
			wait = min(wait, maxUndone)
		}
		last.done, last.until = s.Steady(), last.at.Add(wait)
		tries[lasting(s)] = last
	})
	return last
}

// startAfresh has the steps that went well count from the first again. They stay known, so
// that two steps that undo each other do not start each other afresh in turn.
func startAfresh(tries map[string]try) {
	for name, t := range tries {
		if strings.HasPrefix(name, lastings) {
			t.times, t.until = 0, time.Time{}
			tries[name] = t
		}
	}
}

// held notes that confirmations have led to a hold, and returns how long until the next
// pass. What is only waited for has passes as often as the hold says, but for those that
// compare data.
func (p *pace) held(c desired.Cluster, confirmed []doubt, h decision.Hold) time.Duration {
	for _, d := range confirmed {
		if d.compared || h.Kind != decision.Waiting {
			p.note(c, func(tries map[string]try) {
				t := again(c, tries[d.name])
				t.until = t.at.Add(d.rest(t.times))
				tries[d.name] = t
			})
		}
	}
	return max(h.Again, state.MinRequeue)
}

// rest is how long to wait after so many confirmations in vain, of which this is the last.
func (d doubt) rest(times int) time.Duration {
	wait := min(queue.BackOff(state.MinRequeue, times), maxDoubt)
	if d.compared {
		wait = min(max(wait, share*d.took), queue.MaxRetry)
	}
	return wait
}

// rest notes that nothing is to be done: no doubt is left.
func (p *pace) rest(c desired.Cluster) {
	doubt := func(name string, t try) bool { return t.problem == "" && strings.HasPrefix(name, doubts) }
	for name, t := range p.clusters.Get(c.Key()) {
		if doubt(name, t) {
			p.note(c, func(tries map[string]try) { maps.DeleteFunc(tries, doubt) })
			return
		}
	}
}

// again is one more try of the same; the first, where the last one was for another wish,
// is long ago, or is to count no more.
func again(c desired.Cluster, last try) try {
	now := time.Now()
	if last.wish != c.Digest || now.Sub(last.at) > memory || last.times == 0 {
		last = try{wish: c.Digest, since: now}
	}
	last.times, last.at, last.problem, last.done = last.times+1, now, "", ""
	return last
}

// note changes what is remembered of a cluster, and drops what is old.
func (p *pace) note(c desired.Cluster, change func(tries map[string]try)) {
	p.clusters.Change(c.Key(), func(last map[string]try) map[string]try {
		next := maps.Clone(last)
		if next == nil {
			next = map[string]try{}
		}
		maps.DeleteFunc(next, func(_ string, t try) bool { return time.Since(t.at) > memory })
		change(next)
		return next
	})
}

func (p *pace) forget(key string) { p.clusters.Forget(key) }
