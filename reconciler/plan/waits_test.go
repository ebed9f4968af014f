package plan

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/bundles"
	"github.com/quorate/quorate/reconciler/plan/certificates"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/logs"
	"github.com/quorate/quorate/reconciler/plan/objects"
	"github.com/quorate/quorate/reconciler/plan/recovery"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	planvolumes "github.com/quorate/quorate/reconciler/plan/volumes"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// muchLater is longer than anything is awaited that nobody has to look at.
const muchLater = 30 * 24 * time.Hour

// endless says why a wait has no end, or "": it says since when it lasts, by an object, or
// else at once what a person can do; and what lasts too long is a step, silence, or a hold
// with a way on.
func endless(eval func(*situation.Situation) verdict.Verdict, s *situation.Situation, later time.Duration) string {
	h := eval(s).Hold
	switch {
	case h == nil || h.Kind != decision.Waiting:
		return ""
	case saysWhen(h):
	case h.Since.IsZero() && !tellsAPerson(h):
		return fmt.Sprintf("nobody knows since when it waits, or what to do: %s", h)
	case h.Since.IsZero():
		return ""
	}
	o := s.Observed
	o.Rounds = slices.Clone(o.Rounds)
	for i := range o.Rounds {
		o.Rounds[i].At = o.Rounds[i].At.Add(later)
	}
	then := eval(situation.Of(s.Desired, o, s.Now.Add(later))).Hold
	switch {
	case then == nil:
		return ""
	case then.Kind == decision.Waiting:
		return fmt.Sprintf("after %s it still waits: %s", later, then)
	case !tellsAPerson(then):
		return fmt.Sprintf("after %s nobody is told what to do: %s", later, then)
	}
	return ""
}

// saysWhen reports whether a wait itself says until when it lasts.
func saysWhen(h *decision.Hold) bool { return strings.Contains(h.Message, "maintenance window") }

// awaitedCase is a situation in which a rule waits. What it waits for is over, or overdue,
// by the time later.
type awaitedCase struct {
	eval   func(*situation.Situation) verdict.Verdict
	change mutation
	later  time.Duration
}

// goingPod lets a pod be deleted, for a while.
func goingPod(ordinal int32, changes ...func(*state.Pod)) mutation {
	return func(s *situation.Situation) {
		p := podAt(s, ordinal)
		p.Terminating, p.GoingSince = true, s.Now.Add(-time.Minute)
		for _, change := range changes {
			change(p)
		}
	}
}

// youngPods have been created a moment ago.
func youngPods(s *situation.Situation) {
	for i := range s.Observed.Pods {
		s.Observed.Pods[i].Created = s.Now.Add(-time.Minute)
	}
}

// goingClaim is the claim of orders-3, which is being deleted.
func goingClaim(finalizers string) mutation {
	return func(s *situation.Situation) {
		v := memberVolume("data-orders-3", 8<<30)
		v.Terminating, v.GoingSince, v.Finalizers = true, s.Now.Add(-time.Minute), finalizers
		s.Observed.Volumes = []state.Volume{v}
	}
}

// waitingCases are all of them: TestEveryWaitEnds holds that.
func waitingCases() []awaitedCase {
	upgraded := with(commit(newVersion), begun, rolled(newVersion, 0, 1, 2), youngPods)
	moved := now(func(r *state.Round) { r.ClusterVersion = "3.6.0" })
	closedBefore := func(s *situation.Situation) {
		s.Observed.Set.CurrentTemplate, s.Observed.Set.CurrentVersion = s.Desired.Template, s.Desired.Spec.Version
	}
	down37 := with(runs("3.7.3"), commit("3.6.16"), descends, youngPods, func(s *situation.Situation) {
		s.Observed.Record.Downgrade = &state.Downgrade{Minor: "3.6", Since: noon.Add(-time.Minute)}
		memberAt(s, 1).StorageVersion = "3.7.0"
	})
	since := func(n state.Neighbour) state.Neighbour { n.Since = noon.Add(-time.Minute); return n }
	flushing := with(runs("3.6.16"), exposedTo35, func(s *situation.Situation) {
		s.Desired.Spec.Version, s.Desired.Template, s.Desired.SpecHash = "3.7.3", "z", "z"
		s.Desired.Waypoints = []state.Waypoint{{Version: "3.6.16", Flush: true, Template: "a"}}
		s.Observed.Record.Forced = &state.ForcedSnapshot{Template: "a", Since: noon.Add(-time.Second), Time: noon.Add(-time.Second), Before: map[string]int64{"orders-0": 2, "orders-1": 2, "orders-2": 2}}
	})
	allDown := func(s *situation.Situation) { s.Observed.Set.Replicas = 0 }
	unmade := func(s *situation.Situation) { s.Observed.Record, s.Observed.Set = nil, nil }
	unknown := with(unmade, func(s *situation.Situation) { s.Observed.Volumes = nil })
	allGoing := with(goingPod(0), goingPod(1), goingPod(2))
	asleepNow := with(asksState(schema.StateHibernated), asleep, allDown)
	rolling := with(commit(newVersion), begun)
	recovering := with(leftAlone(1), recovers, allStopped)
	wiped := with(asksState(schema.StateDeleted), stopped, func(s *situation.Situation) {
		s.Observed.Record.Deleted, s.Desired.Spec.Deletion.Volumes = true, schema.VolumesDelete
	})
	noSet := func(s *situation.Situation) { s.Observed.Set, s.Observed.Objects = nil, nil }
	goingSet := func(s *situation.Situation) {
		s.Observed.Set.Terminating, s.Observed.Set.GoingSince, s.Observed.Set.Finalizers = true, noon.Add(-time.Minute), "orphan"
	}
	given2 := with(killed(0, 1, 2), tuned, given(2), at(2), podOfMember(2, func(p *state.Pod) { p.Trouble, p.Barred = "", false }))
	closed := only(windowOf("0 2 * * 6", "3h", "UTC"))
	growing := with(stored, wants("16Gi"), grown(8, 0, 1, 2), ofVolume(0, func(v *state.Volume) { v.GrowingSince = noon.Add(-time.Minute) }))
	misplaced := with(stored, wantsClass(schema.ClassChangeReplace), func(s *situation.Situation) { s.Observed.Set.ClaimClass = "slow" }, closed)
	removed := with(gone(2), wanting(2), func(s *situation.Situation) {
		s.Desired.Spec.Storage.RemovedVolumes = schema.VolumesDelete
	}, goingPod(2))
	soaking := with(rolling, rolled(newVersion, 2), func(s *situation.Situation) { s.Desired.Spec.Upgrade.Soak, podAt(s, 2).ReadySince = seconds(10), noon })
	return []awaitedCase{
		{ownership, with(unknown, allGoing), time.Hour},
		{eval: membership, change: with(gone(2), surging, commit(newVersion), begun, rolled(newVersion, 1), leads(1), func(s *situation.Situation) {
			s.Observed.Record.Leaving = &state.Leaving{Member: "orders-0", ID: "m0", Replace: true, Serving: true, Since: noon}
		})},
		{ownership, with(goingClaim(""), unmade, func(s *situation.Situation) { s.Observed.Pods = nil }), time.Hour},
		{eval: bootstrap, change: with(unformed, newPods(time.Minute, "not scheduled: no node"))},
		{eval: bootstrap, change: unformed},
		{eval: deletion, change: with(wiped, noSet, goingClaim(""))},
		{eval: deletion, change: with(wiped, noSet, goingClaim("example.com/snapshot"))},
		{eval: deletion, change: with(wiped, goingSet)},
		{eval: bootstrap, change: with(unformed, noSet, goingClaim(""), func(s *situation.Situation) { s.Observed.Volumes[0].Bound = false })},
		{eval: downgrade, change: down37},
		{eval: downgrade, change: with(down37, begun, rolled("3.6.16", 0, 1, 2), func(s *situation.Situation) { s.Desired.Spec.Version, s.Desired.Template = "3.7.3", "a" })},
		{eval: fleet, change: with(commit(newVersion), backedUp(0), atMost(1, since(neighbour("db/baskets", "it is being rolled"))))},
		{eval: fleet, change: with(commit(newVersion), backedUp(0), behind(since(neighbour("db/test", "its file has not been applied yet"))))},
		{eval: fleet, change: with(commit(newVersion), backedUp(0), checked(state.Check{Cluster: "db/test", Name: "smoke", Problem: "HTTP 503", Since: noon}))},
		{eval: fleet, change: with(commit(newVersion), backedUp(0), checked(state.Check{Cluster: "db/test", Name: "smoke", For: time.Hour, Since: noon}))},
		{eval: logs.Flush, change: flushing},
		{eval: hibernated, change: with(asleepNow, goingPod(0))},
		{eval: hibernated, change: asleepNow},
		{eval: settled, change: func(s *situation.Situation) { s.Observed.Set.Settled = false }},
		{eval: settled, change: with(upgraded, func(s *situation.Situation) { s.Desired.Template = "c" })},
		{eval: settled, change: with(rolling, at(2))},
		{eval: settled, change: with(rolling, at(2), goingPod(2))},
		{eval: settled, change: with(rolling, soaking, rolled(newVersion, 0, 1, 2), closedBefore, at(0), func(s *situation.Situation) { s.Desired.Template = "c" })},
		{eval: member, change: with(commit(newVersion), goingPod(2))},
		{eval: member, change: with(commit(newVersion), goingPod(2, func(p *state.Pod) { p.LostNode = "n2" }))},
		{eval: member, change: with(commit(newVersion), goingPod(2, func(p *state.Pod) { p.Finalizers = "example.com/drain" }))},
		{eval: member, change: with(rolling, rolled(newVersion, 2), youngPods, down(2))},
		{eval: soak, change: soaking},
		{eval: membership, change: with(wanting(4), joining("m3", 0))},
		{eval: grow, change: with(wanting(5), goingClaim(""))},
		{eval: missing, change: podless(1, 10*time.Second)},
		{eval: path, change: with(upgraded, func(s *situation.Situation) { s.Desired.Spec.Version, s.Desired.Template = oldVersion, "a" })},
		{eval: start, change: with(youngPods, commit(newVersion), now(func(r *state.Round) { r.ClusterVersion = "3.4.0" }))},
		{eval: end, change: upgraded},
		{eval: end, change: with(upgraded, moved, closedBefore, descends)},
		{eval: end, change: with(upgraded, moved)},
		{eval: recovery.Lost, change: with(leftAlone(1), asksFor("c1", "orders-1", ""), youngPods)},
		{eval: recovery.Run, change: with(recovering, func(s *situation.Situation) { s.Observed.Set.Settled = false })},
		{eval: recovery.Run, change: with(recovering, func(s *situation.Situation) { s.Observed.Pods = []state.Pod{{Name: "orders-2"}} })},
		{eval: recovery.Run, change: with(recovering, func(s *situation.Situation) {
			s.Observed.Restore = state.Restore{State: state.RestoreRunning, Since: noon.Add(-time.Minute), Job: "orders-recovery-1"}
		})},
		{eval: recovery.Run, change: with(recovers, adopted, withoutPod(1), func(s *situation.Situation) { s.Observed.Record.Recovering.Since = noon })},
		{eval: recovery.Remedy, change: with(podless(2, time.Second), podless(1, time.Second), killed(0), tuned)},
		{eval: recovery.Remedy, change: with(killed(0, 1, 2), tuned, given(), at(2), goingPod(2))},
		{eval: recovery.Remedy, change: given2},
		{eval: repair, change: damaged(1, state.DamageEmpty, time.Minute)},
		{eval: repair, change: leavesItsVolume(time.Second)},
		{eval: remove, change: removed},
		{eval: planvolumes.Grown, change: misplaced, later: 135 * time.Hour},
		{eval: planvolumes.Grown, change: growing},
		{eval: planvolumes.Grown, change: with(stored, wantsClass(schema.ClassChangeReplace), func(s *situation.Situation) {
			s.Observed.Trial = state.Trial{State: state.TrialRunning, Since: noon.Add(-time.Minute)}
		})},
		{eval: window, change: with(commit(newVersion), backedUp(0), closed), later: 135 * time.Hour},
		{eval: objects.Fight, change: with(fought("Service", time.Minute), func(s *situation.Situation) { s.Observed.Objects[0].ChangedAt = noon.Add(-time.Minute) })},
		{eval: objects.Drift, change: goingSet},
		{eval: certificates.Transport, change: overlapping(2 * time.Hour)},
		{eval: certificates.Issuer, change: handsOver(ownLeaves, schema.TLSSecrets, bothTold, func(i *state.Issuers) { i.NamedAt = noon.Add(-time.Minute) })},
		{eval: certificates.Rotate, change: trustingBoth(time.Hour)},
		{eval: certificates.Rotate, change: trustingBoth(24*time.Hour + time.Minute)},
		{eval: bundles.TakeUp, change: trusting(func(t *state.Trust) {
			t.Kept, t.Running, t.ChangedAt = []string{"old"}, []string{"old"}, noon.Add(-time.Minute)
		})},
	}
}

// 208 346: every wait of the planner, found in its source, has a case here, says since when
// it lasts, by an object, and turns in time into something else: a hold with a way on where
// nothing has come of it.
func TestEveryWaitEnds(t *testing.T) {
	var seen []string
	for i, c := range waitingCases() {
		s := healthy(3)
		c.change(s)
		s.Desired = rendered(s.Desired, s.Observed)
		s = situation.Of(s.Desired, s.Observed, noon)
		h := c.eval(s).Hold
		if h == nil || h.Kind != decision.Waiting || (h.Since.IsZero() && !saysWhen(h)) {
			t.Errorf("case %d does not wait since a known time: %q %+v", i, said(c.eval, s), h)
			continue
		}
		seen = append(seen, h.Message)
		later := c.later
		if later == 0 {
			later = muchLater
		}
		if problem := endless(c.eval, s, later); problem != "" {
			t.Errorf("%s: %s", h.Message, problem)
		}
	}
	for _, site := range waitSites(t) {
		if !slices.ContainsFunc(seen, site.message.MatchString) {
			t.Errorf("%s: no case for this wait (%s): add one to waitingCases", site.at, site.message)
		}
	}
}

// waitSite is a call that makes a wait, and what its messages look like.
type waitSite struct {
	at      string
	message *regexp.Regexp
}

// messageOf is which argument of a call is the message of a wait; -1 where it has its own.
var messageOf = map[string]int{
	"verdict.Wait": 1, "verdict.WaitFor": 1, "verdict.WaitUntil": 0, "awaitOthers": 1,
	"stalled.Controller": 1, "Controller": 1, "stalled.Gone": 2, "stalled.Claim": 2,
}

// waitSites are the calls in the source of the planner that make waits. Where the message is
// handed in, those that hand it in count.
func waitSites(t *testing.T) []waitSite {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	below, err2 := filepath.Glob("*/*.go")
	if err != nil || err2 != nil || len(below) == 0 {
		t.Fatal("no source: ", err, err2)
	}
	var sites []waitSite
	for _, path := range append(paths, below...) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "verdict/") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is {
				sites = append(sites, sitesIn(t, files, f)...)
			}
		}
	}
	if len(sites) < 30 {
		t.Fatalf("only %d waits found in the source", len(sites))
	}
	return sites
}

func sitesIn(t *testing.T, files *token.FileSet, f *ast.FuncDecl) (sites []waitSite) {
	t.Helper()
	ast.Inspect(f, func(n ast.Node) bool {
		if e, is := n.(*ast.SelectorExpr); is && nameOf(e) == "decision.Waiting" && f.Name.Name != "passes" {
			t.Errorf("%s: a wait that is not made by package verdict has no bound", files.Position(n.Pos()))
		}
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		i, waits := messageOf[nameOf(call.Fun)]
		if !waits || f.Name.Name == nameOf(call.Fun) {
			return true
		}
		pattern := patternOf(f, call.Args[i])
		if pattern == "" && messageOf[f.Name.Name] == 0 && messageOf["stalled."+f.Name.Name] == 0 {
			t.Errorf("%s: the message of this wait cannot be read: write it here", files.Position(n.Pos()))
		}
		if pattern != "" {
			sites = append(sites, waitSite{files.Position(n.Pos()).String(), regexp.MustCompile(pattern)})
		}
		return true
	})
	return sites
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return nameOf(e.X) + "." + e.Sel.Name
	}
	return ""
}

// patternOf is what the literals of an expression, or of what the variable in it was set to,
// leave of a message: "" for one that has none.
func patternOf(f *ast.FuncDecl, e ast.Expr) string {
	var parts []string
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if nameOf(n.Fun) == "fmt.Sprintf" {
				parts = append(parts, patternOf(f, n.Args[0]))
			} else {
				parts = append(parts, "") // what it returns may be anything
			}
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				for _, part := range regexp.MustCompile(`%[a-z]`).Split(text, -1) {
					parts = append(parts, regexp.QuoteMeta(part))
				}
			}
		case *ast.Ident:
			if f != nil {
				parts = append(parts, assigned(f, n.Name))
			}
		}
		return true
	})
	if strings.Join(parts, "") == "" {
		return ""
	}
	return strings.Join(parts, ".*")
}

// assigned is the pattern of what a function sets a variable to first.
func assigned(f *ast.FuncDecl, name string) (pattern string) {
	ast.Inspect(f, func(n ast.Node) bool {
		set, is := n.(*ast.AssignStmt)
		if is && set.Tok == token.DEFINE && pattern == "" && len(set.Lhs) == len(set.Rhs) {
			for i := range set.Lhs {
				if nameOf(set.Lhs[i]) == name {
					pattern = patternOf(nil, set.Rhs[i])
				}
			}
		}
		return true
	})
	return pattern
}

// What has lasted too long says what keeps Kubernetes, and what a person can do about that.
func TestWhatLastsTooLong(t *testing.T) {
	old := func(p *state.Pod) { p.GoingSince = noon.Add(-10 * time.Minute) }
	lost := func(p *state.Pod) { p.LostNode = "n2" }
	kept := func(p *state.Pod) { p.Finalizers = "example.com/drain" }
	unchanged := func(s *situation.Situation) { s.Observed.Set.ChangedAt = noon.Add(-10 * time.Minute) }
	checkRule(t, member, []ruleCase{
		{name: "347: a pod that its kubelet does not stop", change: with(commit(newVersion), goingPod(2, old)), want: "Unhealthy: orders-2 is shutting down; find out why its node does not stop it: `kubectl -n db describe pod orders-2`"},
		{name: "347: one that was deleted a moment ago", change: with(commit(newVersion), goingPod(2, lost)), want: "Waiting: orders-2 is shutting down; its node n2 does not report", lacks: "--force"},
		{name: "347: one on a node that does not report", change: with(commit(newVersion), goingPod(2, old, lost)), want: "Unhealthy: orders-2 is shutting down; its node n2 does not report, or is gone, so that etcd may still run there; bring node n2 back; only if it is switched off for certain, `kubectl taint node n2 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`, which frees its volumes too, or, where the node is deleted, `kubectl -n db delete pod orders-2 --force --grace-period=0`; on a node that still runs this starts a second etcd"},
		{name: "347: one that a finalizer keeps", change: with(commit(newVersion), goingPod(2, old, kept)), want: "Unhealthy: orders-2 is shutting down; finalizers keep it: example.com/drain; find out why what has set them does not end"},
	})
	checkRule(t, settled, []ruleCase{
		{name: "349: the controller manager is down", change: with(unchanged, func(s *situation.Situation) { s.Observed.Set.Settled = false }), want: "Unhealthy: the StatefulSet controller has not seen the last change yet; find out why: `kubectl -n db describe statefulset orders`; check as well that kube-controller-manager runs"},
		{name: "349: it does not replace a pod", change: with(commit(newVersion), begun, at(2), unchanged), want: "Unhealthy: the StatefulSet replaces orders-2; find out why: `kubectl -n db describe statefulset orders`"},
	})
	claim := func(finalizers string) mutation {
		return with(wanting(5), goingClaim(finalizers), func(s *situation.Situation) { s.Observed.Volumes[0].GoingSince = noon.Add(-10 * time.Minute) })
	}
	checkRule(t, grow, []ruleCase{
		{name: "348: a claim with a finalizer", change: claim("example.com/snapshot"), want: "Unhealthy: the volume of the former orders-3 is being deleted; finalizers keep it: example.com/snapshot; find out why what has set them does not end (a snapshot, a backup tool, the storage driver): `kubectl -n db describe pvc data-orders-3`"},
		{name: "348: a claim that a pod uses", change: claim(""), want: "Unhealthy: the volume of the former orders-3 is being deleted; find out which pod still uses it"},
	})
	set := func(finalizers string) mutation {
		return func(s *situation.Situation) {
			s.Observed.Set.Terminating, s.Observed.Set.GoingSince, s.Observed.Set.Finalizers = true, noon.Add(-10*time.Minute), finalizers
		}
	}
	const collector = "check that kube-controller-manager runs, and what keeps its garbage collector: an API that does not answer (`kubectl get apiservices`)"
	checkRule(t, objects.Drift, []ruleCase{
		{name: "348: a StatefulSet that the garbage collector does not release", change: set("orphan"), want: "Unhealthy: the StatefulSet is being deleted; its pods stay, and are taken over by the next one; " + collector},
		{name: "348: whose finalizer is not for a person to take off", change: set("orphan"), want: "do not take finalizers off by hand: its pods would go with it"},
		{name: "348: one whose pods go with it", change: set("foregroundDeletion"), want: "Unhealthy: the StatefulSet is being deleted; " + collector, lacks: "its pods stay"},
	})
	checkRule(t, objects.Drift, []ruleCase{
		{name: "one that has released its pods has no fewer than it should", change: func(s *situation.Situation) {
			s.Observed.Set, s.Observed.Objects = nil, []state.Object{{Kind: "StatefulSet", Name: "orders", State: state.ObjectInSync}}
		}, want: "the StatefulSet is gone"},
	})
	checkRule(t, deletion, []ruleCase{
		{name: "348: one that is to go", change: with(asksState(schema.StateDeleted), stopped, set("foregroundDeletion"), func(s *situation.Situation) { s.Observed.Record.Deleted = true }), want: "Unhealthy: the StatefulSet is being deleted; " + collector},
	})
}

// 352: in a cluster that was restored in another one's place, whose claims still exist, no
// hold and no step names a claim of that one: it may be the only copy.
func TestNoHoldNamesTheClaimsOfAPredecessor(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "scenarios", "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	named := 0
	for _, path := range paths {
		a := readArchive(t, path)
		d, o := a.desired(t), state.Observed{Auth: &state.Auth{}}
		a.observe(t, d, &o)
		if o.Record == nil || o.Record.ClaimPrefix != "" || d.Restore != nil {
			continue
		}
		o.Record.ClaimPrefix = "data-r7"
		for i := range o.Volumes {
			o.Volumes[i].Claim = strings.Replace(o.Volumes[i].Claim, "data-", "data-r7-", 1)
		}
		text := Make(d, o, noon).Text()
		if strings.Contains(text, "data-orders-") {
			t.Errorf("%s: %s", path, text)
		}
		if strings.Contains(text, "data-r7-orders-") {
			named++
		}
	}
	if named < 10 {
		t.Errorf("only %d scenarios name a claim", named)
	}
}
