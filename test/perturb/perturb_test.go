package perturb

import (
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/test/perturb/score"
)

var (
	// showLog shows what quorate has logged in a run that failed.
	showLog = flag.Bool("log", false, "show the log of runs that fail")
	// all disturbs each request rather than a part of them.
	all = flag.Bool("all", false, "disturb each request in each way, and try each pair")
	// page is where the figures are written.
	page = flag.String("write", "", "page that gets the figures")
)

// TestMain lets the heap grow between two collections: a world is small, and soon gone.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run()) //nolint:forbidigo // TestMain returns no error
}

// share is which part of all disturbances is tried without -all: one in so many.
const share = 40

// chosen reports whether a disturbance is among those to try: by its name, so that the
// same are tried in each run.
func chosen(name string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return *all || h.Sum32()%share == 0
}

// waysOfWrites and waysOfCalls are how a request is disturbed.
func waysOfWrites() []string {
	return []string{refused, answered, stopped, killed, heldBack, unseen, stale}
}

func waysOfCalls(call string) []string {
	if n, found := strings.CutPrefix(call, "round-"); found && !everyEighth(n) {
		return nil // one look at the members is like the next
	}
	if strings.HasPrefix(call, "round-") || strings.HasPrefix(call, "deep-round-") {
		return []string{failed, timeout, another, old, hangs}
	}
	return []string{failed, timeout, unanswered, late, another, hangs}
}

func everyEighth(n string) bool {
	i, err := strconv.Atoi(n)
	return err == nil && i%8 == 1
}

// 323: a write to the API server that is refused, is done but answered with an error, is
// the last thing of a process, or is told of late, never or out of the past, changes
// nothing of how it ends, nor does it cost a restart.
func TestADisturbedWriteChangesNothing(t *testing.T) {
	f := &score.Table{Columns: waysOfWrites()}
	publish(t, "Writes to the API server", f.String, func(title string) error { return score.WriteTable(*page, title, f) })
	disturb(t, f, func(o outcome) []string { return o.writes }, func(string) []string { return waysOfWrites() })
}

// 324: nor does a call to the members that fails, hangs, is done but not answered, or much
// later, or is answered by another member, or with what was true a while ago.
func TestADisturbedCallChangesNothing(t *testing.T) {
	f := &score.Table{Columns: []string{failed, timeout, unanswered, late, another, old, hangs}}
	publish(t, "Calls to the members", f.String, func(title string) error { return score.WriteTable(*page, title, f) })
	disturb(t, f, func(o outcome) []string { return o.calls }, waysOfCalls)
}

// publish tells the figures when the test has ended, and writes them to the page.
func publish(t *testing.T, title string, figures func() string, write func(title string) error) {
	t.Helper()
	t.Cleanup(func() {
		t.Logf("%s: %s", title, figures())
		if *page == "" {
			return
		}
		if err := write(title); err != nil {
			t.Error(err)
		}
	})
}

func disturb(t *testing.T, f *score.Table, requests func(outcome) []string, ways func(string) []string) {
	t.Helper()
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			undisturbed := play(t, s, disturbance{})
			for _, w := range undisturbed.wrong {
				t.Errorf("undisturbed: %s", w)
			}
			if undisturbed.hold != "" {
				t.Errorf("undisturbed it ends with %s", undisturbed.hold)
			}
			if len(requests(undisturbed)) == 0 {
				t.Error("there is nothing to disturb")
			}
			if t.Failed() {
				t.Fatal(tail(undisturbed.log))
			}
			f.Row(s.name, len(requests(undisturbed)))
			for _, at := range requests(undisturbed) {
				for _, how := range ways(at) {
					name := fmt.Sprintf("%s/%s/%s", s.name, at, how)
					if !chosen(name) && !named(2) {
						continue
					}
					t.Run(at+"/"+how, func(t *testing.T) {
						got := play(t, s, disturbance{at, how})
						compare(t, undisturbed, got)
						f.Add(s.name, how, endOf(undisturbed, got))
					})
				}
			}
		})
	}
}

// endOf is how a run has ended. One that broke something on its way has failed, whatever
// its hold says.
func endOf(want, got outcome) score.End {
	same := got.hold == "" && score.Differ(want.end, got.end) == ""
	switch {
	case len(got.wrong) > 0 || len(restartedMore(want, got)) > 0 || !same && !got.wayOn:
		return score.Failed
	case !same:
		return score.Held
	case !got.hit:
		return score.Unmet
	}
	return score.Same
}

// restartedMore are the members that were started more often than undisturbed.
func restartedMore(want, got outcome) (members []string) {
	for member, n := range got.restarts {
		if n > want.restarts[member] {
			members = append(members, member)
		}
	}
	return members
}

// A run that is held is not counted as one that ended the same, and is one with a way on
// only where nothing broke.
func TestAHeldRunIsNotTheSameEnd(t *testing.T) {
	want := outcome{end: []string{"a"}, restarts: map[string]int{"orders-0": 1}}
	for name, c := range map[string]struct {
		got  outcome
		want score.End
	}{
		"same":           {outcome{end: []string{"a"}, hit: true}, score.Same},
		"unmet":          {outcome{end: []string{"a"}}, score.Unmet},
		"other end":      {outcome{end: []string{"b"}, hit: true}, score.Failed},
		"held":           {outcome{end: []string{"b"}, hit: true, hold: "waits", wayOn: true}, score.Held},
		"held, same end": {outcome{end: []string{"a"}, hit: true, hold: "waits", wayOn: true}, score.Held},
		"no way on":      {outcome{end: []string{"b"}, hit: true, hold: "waits"}, score.Failed},
		"broke":          {outcome{end: []string{"b"}, hit: true, hold: "waits", wayOn: true, wrong: []string{"I1"}}, score.Failed},
		"restarted":      {outcome{end: []string{"b"}, hold: "waits", wayOn: true, restarts: map[string]int{"orders-0": 2}}, score.Failed},
	} {
		if got := endOf(want, c.got); got != c.want {
			t.Errorf("%s: it counts as %d, want %d", name, got, c.want)
		}
	}
}

// named reports whether somebody asks for one test by its name, so many levels down.
func named(levels int) bool {
	return strings.Count(flag.Lookup("test.run").Value.String(), "/") >= levels
}

// compare wants a run to end as the undisturbed one does, with no more restarts. A request
// that never comes is none: what is said about a cluster may come a round later, and so
// once less.
func compare(t *testing.T, want, got outcome) {
	t.Helper()
	for _, w := range got.wrong {
		t.Error(w)
	}
	if d := score.Differ(want.end, got.end); d != "" {
		t.Errorf("it ends another way than undisturbed (-) does:\n%s", d)
	}
	for _, member := range restartedMore(want, got) {
		t.Errorf("%s was started %d times, undisturbed %d", member, got.restarts[member], want.restarts[member])
	}
	if got.hold != "" {
		t.Errorf("it ends with %s", got.hold)
	}
	if t.Failed() && *showLog {
		t.Log(got.log)
	}
}

// tail is the end of a log.
func tail(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}
