package execute_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/execute"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/schema"
)

// untilStep makes passes until the next step is an action of this kind.
func untilStep[A action.Action](w *reconcilertest.World) A {
	w.Helper()
	var action A
	w.Until(func(p decision.Plan) bool {
		if p.Hold != nil || len(p.Steps) == 0 {
			return false
		}
		a, ok := p.Steps[0].Action.(A)
		action = a
		return ok
	})
	return action
}

// 53 55: one commit over three minors is a roll with its backup at each stop, with
// what the log needs on the way, and is applied when the last stop is reached.
func TestStepwiseWalk(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		if got := w.Record().BornOn; got != "3.4" {
			t.Errorf("born on %q", got)
		}
		w.Commit(clustertest.ToVersion("3.7.3"), reconcilertest.Stepwise)
		var stops []string
		w.Until(func(p decision.Plan) bool {
			set := w.Set()
			stop := fmt.Sprintf("%s %t", set.Spec.Template.Annotations[naming.AnnotationVersion], slices.Contains(execute.EtcdArgs(set), "--snapshot-count=1"))
			if len(stops) == 0 || stops[len(stops)-1] != stop {
				stops = append(stops, stop)
			}
			if applied := w.Record().Applied.Version; stop != "3.7.3 false" && applied != "3.4.34" {
				t.Fatalf("applied %s at %s", applied, stop)
			}
			return p.Idle()
		})
		if want := []string{"3.4.34 false", "3.5.35 false", "3.6.16 true", "3.7.3 false"}; !slices.Equal(stops, want) {
			t.Errorf("stops %q, want %q", stops, want)
		}
		steps := w.Lines("step started", "action")
		for text, want := range map[string]int{"back up": 3, "start the roll": 3, "restart orders-": 9, "add to the log": 1, "has saved its state": 1, "end the roll": 3, "is applied": 1} {
			if got := execute.Count(steps, text); got != want {
				t.Errorf("%d steps %q, want %d in %q", got, text, want, steps)
			}
		}
		r := w.Record()
		if r.Applied.Version != "3.7.3" || !maps.Equal(r.Flushed, r.Members) || r.Nudged != nil || r.BornOn != "3.4" || r.Backup.For != "3.7.3" {
			t.Errorf("record %+v", r)
		}
	}, clustertest.ToVersion("3.4.34"))
}

// 55: while one member does not save its state, no member gets 3.7.
func TestNoStepTo37BeforeEveryMemberSavedItsState(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.BornOn("")
		w.Etcd.Saves = func(member string) bool { return member != "orders-1" }
		w.Commit(clustertest.ToVersion("3.7.3"))
		untilStep[action.ForceSnapshot](w)
		for range 50 {
			w.MustPass()
			time.Sleep(time.Second)
		}
		p, err := w.R.Plan(w.Context(), w.Wish)
		if err != nil || w.VersionOf("orders-2") != "3.6.16" || !strings.Contains(p.Text(), "orders-1") {
			t.Errorf("%v\n%s", err, p.Text())
		}
		nudged := w.Record().Nudged
		if nudged == nil || !nudged.At.After(nudged.Since) || nudged.Before["orders-0"] < 2 || nudged.Before["orders-1"] != 0 {
			t.Errorf("nudged %+v", nudged)
		}
		w.Etcd.Saves = nil
		w.UntilIdle()
		if w.VersionOf("orders-2") != "3.7.3" || slices.Contains(execute.EtcdArgs(w.Set()), "--snapshot-count=1") {
			t.Errorf("orders-2 runs %s with %q", w.VersionOf("orders-2"), execute.EtcdArgs(w.Set()))
		}
	}, clustertest.ToVersion("3.6.16"), func(c *schema.EtcdCluster) { c.Spec.Upgrade.Backup = schema.BackupSkip })
}

// 53: the way down: backup, etcd is told, members one by one, the end, the record.
func TestDowngradeOfACluster(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.ToVersion("3.6.16"))
		a := untilStep[action.EnableDowngrade](w)
		if want := (action.EnableDowngrade{Member: "orders-0", MemberID: "a0", From: "3.7", To: "3.6", Backup: "downgrade to 3.6.16"}); a != want {
			t.Errorf("%+v, want %+v", a, want)
		}
		w.MustPass()
		r := w.Record()
		if r.Downgrade == nil || r.Downgrade.Line != "3.6" || r.BornOn != "3.6" || !maps.Equal(r.Flushed, r.Members) {
			t.Errorf("while it goes down: %+v", r)
		}
		w.UntilIdle()
		for _, name := range w.Etcd.Members {
			if v := w.VersionOf(name); v != "3.6.16" {
				t.Errorf("%s runs %s", name, v)
			}
		}
		if n := execute.Count(w.Etcd.Calls, "downgrade"); n != 1 {
			t.Errorf("calls %q", w.Etcd.Calls)
		}
		if m, err := (backup.Store{}).Verify(w.Context(), w.Record().Backup.URL); err != nil || m.TargetVersion != "3.6.16" || m.Reason != "downgrade 3.7.3 → 3.6.16" || m.EtcdVersion != "3.7.3" {
			t.Errorf("backup %+v, %v", m, err)
		}
		if r := w.Record(); r.Downgrade != nil || r.Applied.Version != "3.6.16" || r.Backup.For != "downgrade to 3.6.16" {
			t.Errorf("at the end: %+v", r)
		}
	}, clustertest.ToVersion("3.7.3"))
}

// 20: Git goes back in the middle: the downgrade is cancelled, and the one member
// that has the older minor comes back.
func TestDowngradeTakenBack(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		before := w.Wish
		w.Commit(clustertest.ToVersion("3.6.16"))
		w.Until(func(decision.Plan) bool { return w.VersionOf("orders-2") == "3.6.16" })
		w.Wish = before
		w.Commit()
		w.UntilIdle()
		if w.VersionOf("orders-2") != "3.7.3" || execute.Count(w.Etcd.Calls, "cancel the downgrade") != 1 || w.Etcd.Downgrade != "" {
			t.Errorf("orders-2 runs %s, calls %q", w.VersionOf("orders-2"), w.Etcd.Calls)
		}
		if n := execute.Count(w.Lines("step started", "action"), "restart orders-"); n != 2 {
			t.Errorf("%d restarts, want one there and one back", n)
		}
		if r := w.Record(); r.Downgrade != nil {
			t.Errorf("record %+v", r.Downgrade)
		}
	}, clustertest.ToVersion("3.7.3"))
}

// An answer that is lost is not asked for again: the next look shows that it was
// applied.
func TestDowngradeWhoseAnswerIsLost(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.ToVersion("3.6.16"))
		untilStep[action.EnableDowngrade](w)
		w.Etcd.LoseAnswer = errors.New("context deadline exceeded")
		if _, err := w.Pass(); err == nil {
			t.Error("a lost answer is no error")
		}
		w.Etcd.LoseAnswer = nil
		w.UntilIdle()
		if n := execute.Count(w.Etcd.Calls, "enable the downgrade"); n != 1 || w.VersionOf("orders-0") != "3.6.16" {
			t.Errorf("calls %q, orders-0 runs %s", w.Etcd.Calls, w.VersionOf("orders-0"))
		}
	}, clustertest.ToVersion("3.7.3"))
}

// I11: a backup that is gone from the store when etcd is about to be told.
func TestNoDowngradeWithoutItsBackup(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.ToVersion("3.6.16"))
		untilStep[action.EnableDowngrade](w)
		path, _, _ := strings.Cut(strings.TrimPrefix(w.Record().Backup.URL, "file://"), "?")
		if err := os.Remove(path + backup.ManifestSuffix); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Pass(); err == nil || !strings.Contains(err.Error(), "enable the downgrade: ") {
			t.Errorf("%v", err)
		}
		if n := execute.Count(w.Etcd.Calls, "downgrade"); n != 0 || w.Record().Downgrade != nil {
			t.Errorf("calls %q, record %+v", w.Etcd.Calls, w.Record().Downgrade)
		}
	}, clustertest.ToVersion("3.7.3"))
}

func TestUpgradeActionsTwice(t *testing.T) {
	for name, action := range map[string]action.Action{
		"enable":           action.EnableDowngrade{Member: "orders-0", MemberID: "a0", From: "3.7", To: "3.6"},
		"enable below 3.6": action.EnableDowngrade{Member: "orders-0", MemberID: "a0", From: "3.6", To: "3.5"},
		"cancel":           action.CancelDowngrade{Member: "orders-0", MemberID: "a0", Minor: "3.6"},
		"flushed":          action.RecordFlushed{Members: map[string]string{"orders-0": "a0"}},
		"applied":          action.RecordApplied{SpecHash: "h", Version: "3.7.3", Commit: "f00"},
	} {
		t.Run(name, func(t *testing.T) { reconcilertest.Formed(t, func(w *reconcilertest.World) { twice(w, action) }) })
	}
}

// A second time keeps when it began; another line is another downgrade.
func TestEnableDowngradeTwice(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		since := time.Now().UTC()
		for range 2 {
			w.MustDo(action.EnableDowngrade{Member: "orders-0", MemberID: "a0", From: "3.7", To: "3.6"})
			if d := w.Record().Downgrade; d.Line != "3.6" || !d.Since.Equal(since) {
				t.Errorf("%+v, want it since %s", d, since)
			}
			time.Sleep(time.Minute)
		}
		w.MustDo(action.EnableDowngrade{Member: "orders-0", MemberID: "a0", From: "3.6", To: "3.5"})
		if d := w.Record().Downgrade; d.Line != "3.5" || !d.Since.Equal(time.Now()) {
			t.Errorf("%+v", d)
		}
	})
}

// Entries are added after it was recorded how often each member saved its
// state; a second time keeps when it began.
func TestNudgeTwice(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Etcd.Saved = map[string]int64{"orders-0": 4, "orders-1": 5}
		w.MustDo(action.ForceSnapshot{Member: "orders-0", MemberID: "a0", Template: "t"})
		first := w.Record().Nudged
		if want := map[string]int64{"orders-0": 4, "orders-1": 5, "orders-2": 0}; !reflect.DeepEqual(first.Before, want) || first.Template != "t" {
			t.Errorf("%+v, want %v", first, want)
		}
		time.Sleep(time.Minute)
		w.MustDo(action.ForceSnapshot{Member: "orders-0", MemberID: "a0", Template: "t"})
		second := w.Record().Nudged
		if !second.Since.Equal(first.Since) || !second.At.After(first.At) || second.Before["orders-0"] != 5 || execute.Count(w.Etcd.Calls, "nudge") != 2 {
			t.Errorf("%+v after %+v, calls %q", second, first, w.Etcd.Calls)
		}
		w.MustDo(action.ForceSnapshot{Member: "orders-0", MemberID: "a0", Template: "u"})
		if third := w.Record().Nudged; third.Since.Equal(first.Since) {
			t.Errorf("another template: %+v", third)
		}
		down := w.Etcd.Version
		w.Etcd.Version = func(member string) string {
			if member == "orders-1" {
				return ""
			}
			return down(member)
		}
		if err := w.Do(action.ForceSnapshot{Member: "orders-0", MemberID: "a0", Template: "v"}); err == nil || !strings.Contains(err.Error(), "orders-1 does not report how often it has saved its state") {
			t.Errorf("%v", err)
		}
		if w.Record().Nudged.Template == "v" {
			t.Error("it was written down all the same")
		}
	})
}

// The end of a roll that a commit has overtaken keeps the template of that roll:
// only the next roll brings the next one, behind its gates.
func TestEndRollKeepsTheTemplate(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		hash := w.Set().Spec.Template.Annotations[naming.AnnotationTemplateHash]
		w.Commit(clustertest.ToVersion("3.6.15"))
		for range 2 {
			w.MustDo(action.EndRoll{Replicas: 2})
			if set := w.Set(); set.Spec.Template.Annotations[naming.AnnotationTemplateHash] != hash || observe.Partition(set) != 2 {
				t.Errorf("partition %d, template %v", observe.Partition(set), set.Spec.Template.Annotations)
			}
		}
		// A template that is not quorate's cannot be kept as it is.
		for name, fields := range map[string][]metav1.ManagedFieldsEntry{
			"nothing": nil,
			"only the replicas": {{
				Manager: naming.FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
			}},
		} {
			v := w.Look()
			v.Set = v.Set.DeepCopy()
			v.Set.ManagedFields = fields
			if err := w.R.Executor.Execute(w.Context(), v, action.EndRoll{Replicas: 2}); err == nil || !strings.Contains(err.Error(), "quorate does not own its template") {
				t.Errorf("quorate owns %s: %v", name, err)
			}
		}
	}, clustertest.ToVersion("3.6.16"))
}
