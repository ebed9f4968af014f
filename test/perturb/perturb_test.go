package perturb

import (
	"flag"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
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

// share is which part of all disturbances is tried without -all: one in so many, and a tenth of these with -short.
func share() uint32 {
	if testing.Short() {
		return 400
	}
	return 40
}

// chosen reports whether a disturbance is among those to try: by its name, so that the
// same are tried in each run.
func chosen(name string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return *all || h.Sum32()%share() == 0
}

// undisturbedRuns has a run for each scenario that was played without a disturbance, by the scenario's name.
var undisturbedRuns sync.Map

type undisturbedRun struct {
	sync.Once
	outcome outcome
}

// undisturbed plays a scenario without a disturbance, once for all tests that compare with it.
func undisturbed(t *testing.T, s scenario) outcome {
	t.Helper()
	kept, _ := undisturbedRuns.LoadOrStore(s.name, &undisturbedRun{})
	run, _ := kept.(*undisturbedRun)
	run.Do(func() { run.outcome = play(t, s, disturbance{}) })
	return run.outcome
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
			want := undisturbed(t, s)
			for _, w := range want.wrong {
				t.Errorf("undisturbed: %s", w)
			}
			if want.hold != "" {
				t.Errorf("undisturbed it ends with %s", want.hold)
			}
			if len(requests(want)) == 0 {
				t.Error("there is nothing to disturb")
			}
			if t.Failed() {
				t.Fatal(tail(want.log))
			}
			f.Row(s.name, len(requests(want)))
			for _, at := range requests(want) {
				for _, how := range ways(at) {
					name := fmt.Sprintf("%s/%s/%s", s.name, at, how)
					if !chosen(name) && !named(2) {
						continue
					}
					t.Run(at+"/"+how, func(t *testing.T) {
						got := play(t, s, disturbance{at, how})
						compare(t, want, got)
						f.Add(s.name, how, got.run().Beside(want.run()))
					})
				}
			}
		})
	}
}

func (o outcome) run() score.Run {
	return score.Run{End: o.end, Wrong: o.wrong, Restarts: o.restarts, Hit: o.hit, Unrest: o.hold, WayOn: o.wayOn}
}

// named reports whether somebody asks for one test by its name, so many levels down.
func named(levels int) bool {
	return strings.Count(flag.Lookup("test.run").Value.String(), "/") >= levels
}

// compare wants a run to end as the undisturbed one does, with no more restarts.
func compare(t *testing.T, want, got outcome) {
	t.Helper()
	for _, p := range got.run().Problems(want.run()) {
		t.Error(p)
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
