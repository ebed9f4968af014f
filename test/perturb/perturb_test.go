package perturb

import (
	"flag"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"testing"
)

var (
	// showLog shows what quorate has logged in a run that failed.
	showLog = flag.Bool("log", false, "show the log of runs that fail")
	// all disturbs each request rather than a part of them.
	all = flag.Bool("all", false, "disturb each request in each way, and try each pair")
)

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

// figures are what was done, for the table.
type figures struct {
	mu                                   sync.Mutex
	scenarios, requests, runs, unreached int
}

func (f *figures) add(change func(*figures)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// 323: a write to the API server that is refused, is done but answered with an error, is
// the last thing of a process, or is told of late, never or out of the past, changes
// nothing of how it ends, nor does it cost a restart.
func TestADisturbedWriteChangesNothing(t *testing.T) {
	disturb(t, "writes", func(o outcome) []string { return o.writes }, func(string) []string { return waysOfWrites() })
}

// 324: nor does a call to the members that fails, hangs, is done but not answered, or much
// later, or is answered by another member, or with what was true a while ago.
func TestADisturbedCallChangesNothing(t *testing.T) {
	disturb(t, "calls", func(o outcome) []string { return o.calls }, waysOfCalls)
}

func disturb(t *testing.T, what string, requests func(outcome) []string, ways func(string) []string) {
	t.Helper()
	f := &figures{}
	t.Cleanup(func() {
		t.Logf("%d scenarios, %d %s; %d disturbances, of which %d did not come to their request", f.scenarios, f.requests, what, f.runs, f.unreached)
	})
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
			f.add(func(f *figures) { f.scenarios, f.requests = f.scenarios+1, f.requests+len(requests(undisturbed)) })
			for _, at := range requests(undisturbed) {
				for _, how := range ways(at) {
					name := fmt.Sprintf("%s/%s/%s", s.name, at, how)
					if !chosen(name) && !named(t) {
						continue
					}
					t.Run(at+"/"+how, func(t *testing.T) {
						got := play(t, s, disturbance{at, how})
						f.add(func(f *figures) {
							f.runs++
							if !got.hit {
								f.unreached++
							}
						})
						compare(t, undisturbed, got)
					})
				}
			}
		})
	}
}

// named reports whether somebody asks for one disturbance by its name.
func named(t *testing.T) bool {
	t.Helper()
	return strings.Count(flag.Lookup("test.run").Value.String(), "/") > 1
}

// compare wants a run to end as the undisturbed one does, with no more restarts. A request
// that never comes is none: what is said about a cluster may come a round later, and so
// once less.
func compare(t *testing.T, want, got outcome) {
	t.Helper()
	for _, w := range got.wrong {
		t.Error(w)
	}
	if d := differ(want.end, got.end); d != "" {
		t.Errorf("it ends another way than undisturbed (-) does:\n%s", d)
	}
	for member, n := range got.restarts {
		if n > want.restarts[member] {
			t.Errorf("%s was started %d times, undisturbed %d", member, n, want.restarts[member])
		}
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
