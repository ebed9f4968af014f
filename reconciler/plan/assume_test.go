package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/outlook"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// 17: a cluster that is what the file says needs nothing, asked twice, whatever
// its size and whoever leads.
func TestAnAssumedClusterNeedsNothing(t *testing.T) {
	for n := range int32(7) {
		d := healthy(n + 1).Desired
		for leader := range n + 1 {
			o := outlook.Assume(d, noon, leader)
			for range 2 {
				if p := Make(d, o, noon); !p.Idle() {
					t.Errorf("%d members, %d leads:\n%s", n+1, leader, p.Text())
				}
			}
		}
	}
}

// 26: what is forecast without a cluster is what happens to a healthy one, when
// nothing goes wrong: whichever member leads, from any release to any other.
func TestOfflineForecastIsWhatHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int8{1, 3}).Draw(t, "members")
		from := rapid.SampledFrom([]int8{0, 1, 2, 4}).Draw(t, "from")
		w := runningWorld(n, from)
		w.ask.skip = rapid.Bool().Draw(t, "skip")
		w.ask.soak = rapid.SampledFrom([]int16{0, 3}).Draw(t, "soak")
		w.record.applied = w.ask
		w.leader = rapid.Int8Range(0, n-1).Draw(t, "leader")
		before := w.desired()
		w.ask.variant = rapid.SampledFrom([]int8{0, 1, 2, 4}).Draw(t, "to")
		shown := Make(w.desired(), outlook.Assume(before, w.now(), int32(w.leader)), w.now())
		var executed []string
		var last decision.Plan
		for range 400 {
			last = Make(w.desired(), w.observed(&w), w.now())
			if last.Idle() || last.Hold != nil && last.Hold.Kind == decision.Refused {
				break
			}
			if last.Hold == nil {
				executed = append(executed, essence(last.Steps[0].Action))
				if broken := w.carryOut(last.Steps[0].Action); broken != "" {
					t.Fatal(broken)
				}
			}
			moveOn(&w)
		}
		if want := essences(shown.Steps); !slices.Equal(executed, want) {
			t.Fatalf("shown    %q\nexecuted %q\nthen %s", want, executed, last.Text())
		}
		if (shown.Hold == nil) != (last.Hold == nil) {
			t.Fatalf("shown %v, then %v", shown.Hold, last.Hold)
		}
	})
}

// 24: a branch that is forced back to an older commit asks for an older release,
// which a cluster that runs the newer minor cannot take where etcd has no way down.
func TestAnOlderCommitIsRefused(t *testing.T) {
	s := healthy(3)
	was := s.Desired
	s.Desired.Spec.Version, s.Desired.Template, s.Desired.SpecHash = "3.4.45", "b", "b"
	p := Make(s.Desired, outlook.Assume(was, noon, 0), noon)
	if p.Hold == nil || p.Hold.Kind != decision.Refused || p.Hold.Rule != "path" || len(p.Steps) > 0 ||
		!strings.Contains(p.Hold.Message, "etcd 3.5 has no downgrade: restore a backup") {
		t.Errorf("%s", p.Text())
	}
}

// 18: two changes of which one has no safe way: nothing is done by half. What can
// be done together is one roll.
func TestTwoChangesAtOnce(t *testing.T) {
	s := healthy(3)
	was := s.Desired
	commit(newVersion)(s)
	for _, c := range []struct {
		name   string
		change func(*state.Desired, *state.Observed)
		want   string
	}{
		{"TLS and version", func(_ *state.Desired, o *state.Observed) { o.Set.Immutable = changesOf("spec.tls.secrets") }, "spec.tls.secrets cannot be changed"},
	} {
		d, o := s.Desired, outlook.Assume(was, noon, 0)
		c.change(&d, &o)
		p := Make(d, o, noon)
		if p.Hold == nil || p.Hold.Kind != decision.Refused || len(p.Steps) > 0 || !strings.Contains(p.Hold.String(), c.want) {
			t.Errorf("%s:\n%s", c.name, p.Text())
		}
	}
	larger := s.Desired
	larger.Spec.Replicas = 5
	if p := Make(larger, outlook.Assume(was, noon, 0), noon); p.Hold != nil || len(decision.Restarts(p.Steps)) != 3 ||
		!strings.Contains(p.Text(), "7. end the roll") || !strings.Contains(p.Text(), "14. write down that orders-4 joins") {
		t.Errorf("size and version: the roll first, then the members:\n%s", p.Text())
	}
	o := outlook.Assume(was, noon, 0)
	o.Objects = []state.Object{{Kind: "Service", Name: "orders", State: state.ObjectDrifted, Detail: "metadata.labels"}}
	p := Make(s.Desired, o, noon)
	if p.Hold != nil || p.Steps[0].Action != (action.ApplyObject{ObjectKind: "Service", Name: "orders"}) || len(decision.Restarts(p.Steps)) != 3 {
		t.Errorf("labels and version:\n%s", p.Text())
	}
}

// midway is a world in which an upgrade has restarted one of three members.
func midway(t *testing.T) world {
	t.Helper()
	w := runningWorld(3, 1)
	w.ask.variant, w.closed = 2, true
	for range 100 {
		before := w
		p := Make(w.desired(), w.observed(&before), w.now())
		if p.Hold == nil {
			w.carryOut(p.Steps[0].Action)
		}
		moveOn(&w)
		if w.pods[2].template == 2 && w.pods[2].state == podUp && !w.claims[2].behind {
			return w
		}
	}
	t.Fatal("no member was upgraded")
	return w
}

// 20: a spec that is reverted in the middle of an upgrade takes one member back,
// restarts no other and needs no further backup.
func TestARevertInTheMiddle(t *testing.T) {
	w := midway(t)
	w.ask.variant = 1
	executed, _ := run(t, w)
	want := []string{"start the roll 3.6.16 → 3.5.35 partition 3", "restart orders-2 3.6.16 → 3.5.35 partition 2 by deletion false"}
	if got := executed[:min(2, len(executed))]; !slices.Equal(got, want) {
		t.Errorf("executed %q", executed)
	}
	for _, action := range executed {
		if strings.HasPrefix(action, "back up") || strings.HasPrefix(action, "restart orders-0") || strings.HasPrefix(action, "restart orders-1") {
			t.Errorf("no need to %s", action)
		}
	}
}

// 21: a file that is deleted in the middle of an upgrade stops it where it is:
// nobody plans, and the cluster on its own takes no further member. The file back,
// the upgrade continues.
func TestAFileThatIsDeletedInTheMiddle(t *testing.T) {
	w := midway(t)
	for range 100 {
		moveOn(&w)
		if w.pods[0].template != 1 || w.pods[1].template != 1 || !w.hasQuorum() {
			t.Fatalf("the cluster went on by itself: %+v", w)
		}
	}
	executed, _ := run(t, w)
	if text := fmt.Sprint(executed); !strings.Contains(text, "restart orders-1") || !strings.Contains(text, "restart orders-0") || strings.Contains(text, "restart orders-2") {
		t.Errorf("executed %q", executed)
	}
}

// 26: behind a window that opens in weeks, the whole upgrade is forecast. What may
// be done before is forecast, too.
func TestForecastBehindAFarWindow(t *testing.T) {
	for name, policy := range map[string]schema.BackupPolicy{"without a backup": schema.BackupSkip, "with a backup": schema.BackupRequired} {
		s := healthy(3)
		was := s.Desired
		commit(newVersion)(s)
		s.Desired.Spec.Upgrade.Backup = policy
		s.Desired.Spec.Maintenance = []schema.MaintenanceWindow{{Schedule: "0 2 20 12 *", Duration: *seconds(3600), TimeZone: "Europe/Berlin"}}
		p := Make(s.Desired, outlook.Assume(was, noon, 0), noon)
		if len(decision.Restarts(p.Steps)) != 3 || (policy == schema.BackupSkip) != (p.Hold != nil) {
			t.Errorf("%s:\n%s", name, p.Text())
		}
		if p.Hold != nil && (p.Hold.Kind != decision.Waiting || !strings.Contains(p.Hold.Message, "Sun 2026-12-20 02:00 CET")) {
			t.Errorf("%s:\n%s", name, p.Text())
		}
	}
}
