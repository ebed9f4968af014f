package reconciler

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

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/schema"
)

// stepwise lets the file ask for a walk through the releases in between.
func stepwise(c *schema.EtcdCluster) { c.Spec.Upgrade.Path = schema.PathStepwise }

// untilStep makes passes until the next step is an action of this kind.
func untilStep[A action.Action](w *world) A {
	w.Helper()
	var action A
	w.until(func(p plan.Plan) bool {
		if p.Hold != nil || len(p.Steps) == 0 {
			return false
		}
		a, ok := p.Steps[0].Action.(A)
		action = a
		return ok
	})
	return action
}

// etcdArgs are the flags of etcd in the StatefulSet's template.
func etcdArgs(set *appsv1.StatefulSet) []string { return set.Spec.Template.Spec.Containers[0].Args }

// count is how many of the list contain a text.
func count(list []string, text string) int {
	n := 0
	for _, s := range list {
		if strings.Contains(s, text) {
			n++
		}
	}
	return n
}

// 53 55: one commit over three minors is a roll with its backup at each stop, with
// what the log needs on the way, and is applied when the last stop is reached.
func TestStepwiseWalk(t *testing.T) {
	formed(t, func(w *world) {
		if got := w.record().BornOn; got != "3.4" {
			t.Errorf("born on %q", got)
		}
		w.commit(toVersion("3.7.3"), stepwise)
		var stops []string
		w.until(func(p plan.Plan) bool {
			set := w.set()
			stop := fmt.Sprintf("%s %t", set.Spec.Template.Annotations[naming.AnnotationVersion], slices.Contains(etcdArgs(set), "--snapshot-count=1"))
			if len(stops) == 0 || stops[len(stops)-1] != stop {
				stops = append(stops, stop)
			}
			if applied := w.record().Applied.Version; stop != "3.7.3 false" && applied != "3.4.34" {
				t.Fatalf("applied %s at %s", applied, stop)
			}
			return p.Idle()
		})
		if want := []string{"3.4.34 false", "3.5.35 false", "3.6.16 true", "3.7.3 false"}; !slices.Equal(stops, want) {
			t.Errorf("stops %q, want %q", stops, want)
		}
		steps := w.lines("step", "action")
		for text, want := range map[string]int{"back up": 3, "start the roll": 3, "restart orders-": 9, "add to the log": 1, "has saved its state": 1, "end the roll": 3, "is applied": 1} {
			if got := count(steps, text); got != want {
				t.Errorf("%d steps %q, want %d in %q", got, text, want, steps)
			}
		}
		r := w.record()
		if r.Applied.Version != "3.7.3" || !maps.Equal(r.Flushed, r.Members) || r.Nudged != nil || r.BornOn != "3.4" || r.Backup.For != "3.7.3" {
			t.Errorf("record %+v", r)
		}
	}, toVersion("3.4.34"))
}

// 55: while one member does not save its state, no member gets 3.7.
func TestNoStepTo37BeforeEveryMemberSavedItsState(t *testing.T) {
	formed(t, func(w *world) {
		w.bornOn("")
		w.etcd.saves = func(member string) bool { return member != "orders-1" }
		w.commit(toVersion("3.7.3"))
		untilStep[action.ForceSnapshot](w)
		for range 50 {
			w.mustPass()
			time.Sleep(time.Second)
		}
		p, err := w.r.Plan(w.Context(), w.wish)
		if err != nil || w.versionOf("orders-2") != "3.6.16" || !strings.Contains(p.Text(), "orders-1") {
			t.Errorf("%v\n%s", err, p.Text())
		}
		nudged := w.record().Nudged
		if nudged == nil || !nudged.At.After(nudged.Since) || nudged.Before["orders-0"] < 2 || nudged.Before["orders-1"] != 0 {
			t.Errorf("nudged %+v", nudged)
		}
		w.etcd.saves = nil
		w.untilIdle()
		if w.versionOf("orders-2") != "3.7.3" || slices.Contains(etcdArgs(w.set()), "--snapshot-count=1") {
			t.Errorf("orders-2 runs %s with %q", w.versionOf("orders-2"), etcdArgs(w.set()))
		}
	}, toVersion("3.6.16"), func(c *schema.EtcdCluster) { c.Spec.Upgrade.Backup = schema.BackupSkip })
}

// bornOn lets the record say on which line the cluster began.
func (w *world) bornOn(line string) {
	w.Helper()
	w.edit(func(r *record.Record) { r.BornOn = line })
	w.settle()
}

// 53: the way down: backup, etcd is told, members one by one, the end, the record.
func TestDowngradeOfACluster(t *testing.T) {
	formed(t, func(w *world) {
		w.commit(toVersion("3.6.16"))
		a := untilStep[action.EnableDowngrade](w)
		if want := (action.EnableDowngrade{Member: "orders-0", MemberID: "a0", From: "3.7", To: "3.6", Backup: "downgrade to 3.6.16"}); a != want {
			t.Errorf("%+v, want %+v", a, want)
		}
		w.mustPass()
		r := w.record()
		if r.Downgrade == nil || r.Downgrade.Line != "3.6" || r.BornOn != "3.6" || !maps.Equal(r.Flushed, r.Members) {
			t.Errorf("while it goes down: %+v", r)
		}
		w.untilIdle()
		for _, name := range w.etcd.members {
			if v := w.versionOf(name); v != "3.6.16" {
				t.Errorf("%s runs %s", name, v)
			}
		}
		if n := count(w.etcd.calls, "downgrade"); n != 1 {
			t.Errorf("calls %q", w.etcd.calls)
		}
		if m, err := (backup.Store{}).Verify(w.Context(), w.record().Backup.URL); err != nil || m.TargetVersion != "3.6.16" || m.Reason != "downgrade 3.7.3 → 3.6.16" || m.EtcdVersion != "3.7.3" {
			t.Errorf("backup %+v, %v", m, err)
		}
		if r := w.record(); r.Downgrade != nil || r.Applied.Version != "3.6.16" || r.Backup.For != "downgrade to 3.6.16" {
			t.Errorf("at the end: %+v", r)
		}
	}, toVersion("3.7.3"))
}

// 20: Git goes back in the middle: the downgrade is cancelled, and the one member
// that has the older minor comes back.
func TestDowngradeTakenBack(t *testing.T) {
	formed(t, func(w *world) {
		before := w.wish
		w.commit(toVersion("3.6.16"))
		w.until(func(plan.Plan) bool { return w.versionOf("orders-2") == "3.6.16" })
		w.wish = before
		w.commit()
		w.untilIdle()
		if w.versionOf("orders-2") != "3.7.3" || count(w.etcd.calls, "cancel the downgrade") != 1 || w.etcd.downgrade != "" {
			t.Errorf("orders-2 runs %s, calls %q", w.versionOf("orders-2"), w.etcd.calls)
		}
		if n := count(w.lines("step", "action"), "restart orders-"); n != 2 {
			t.Errorf("%d restarts, want one there and one back", n)
		}
		if r := w.record(); r.Downgrade != nil {
			t.Errorf("record %+v", r.Downgrade)
		}
	}, toVersion("3.7.3"))
}

// An answer that is lost is not asked for again: the next look shows that it was
// carried out.
func TestDowngradeWhoseAnswerIsLost(t *testing.T) {
	formed(t, func(w *world) {
		w.commit(toVersion("3.6.16"))
		untilStep[action.EnableDowngrade](w)
		w.etcd.loseAnswer = errors.New("context deadline exceeded")
		if _, err := w.pass(); err == nil {
			t.Error("a lost answer is no error")
		}
		w.etcd.loseAnswer = nil
		w.untilIdle()
		if n := count(w.etcd.calls, "enable the downgrade"); n != 1 || w.versionOf("orders-0") != "3.6.16" {
			t.Errorf("calls %q, orders-0 runs %s", w.etcd.calls, w.versionOf("orders-0"))
		}
	}, toVersion("3.7.3"))
}

// I11: a backup that is gone from the store when etcd is about to be told.
func TestNoDowngradeWithoutItsBackup(t *testing.T) {
	formed(t, func(w *world) {
		w.commit(toVersion("3.6.16"))
		untilStep[action.EnableDowngrade](w)
		path, _, _ := strings.Cut(strings.TrimPrefix(w.record().Backup.URL, "file://"), "?")
		if err := os.Remove(path + backup.ManifestSuffix); err != nil {
			t.Fatal(err)
		}
		if _, err := w.pass(); err == nil || !strings.Contains(err.Error(), "enable the downgrade: ") {
			t.Errorf("%v", err)
		}
		if n := count(w.etcd.calls, "downgrade"); n != 0 || w.record().Downgrade != nil {
			t.Errorf("calls %q, record %+v", w.etcd.calls, w.record().Downgrade)
		}
	}, toVersion("3.7.3"))
}

func TestUpgradeActionsTwice(t *testing.T) {
	for name, action := range map[string]action.Action{
		"enable":           action.EnableDowngrade{Member: "orders-0", MemberID: "a0", From: "3.7", To: "3.6"},
		"enable below 3.6": action.EnableDowngrade{Member: "orders-0", MemberID: "a0", From: "3.6", To: "3.5"},
		"cancel":           action.CancelDowngrade{Member: "orders-0", MemberID: "a0", Line: "3.6"},
		"flushed":          action.RecordFlushed{Members: map[string]string{"orders-0": "a0"}},
		"applied":          action.RecordApplied{SpecHash: "h", Version: "3.7.3", Commit: "f00"},
	} {
		t.Run(name, func(t *testing.T) { formed(t, func(w *world) { twice(w, action) }) })
	}
}

// A second time keeps when it began; another line is another downgrade.
func TestEnableDowngradeTwice(t *testing.T) {
	formed(t, func(w *world) {
		since := time.Now().UTC()
		for range 2 {
			w.mustDo(action.EnableDowngrade{Member: "orders-0", MemberID: "a0", From: "3.7", To: "3.6"})
			if d := w.record().Downgrade; d.Line != "3.6" || !d.Since.Equal(since) {
				t.Errorf("%+v, want it since %s", d, since)
			}
			time.Sleep(time.Minute)
		}
		w.mustDo(action.EnableDowngrade{Member: "orders-0", MemberID: "a0", From: "3.6", To: "3.5"})
		if d := w.record().Downgrade; d.Line != "3.5" || !d.Since.Equal(time.Now()) {
			t.Errorf("%+v", d)
		}
	})
}

// A member that runs a release which reads old logs only so far has seen, when it
// started, that its own is readable; one of any other release has seen nothing.
func TestAppliedReleaseHasReadTheLogs(t *testing.T) {
	for version, want := range map[string]map[string]string{"3.7.3": {"orders-0": "a0"}, "3.6.16": nil} {
		r := record.Record{Members: map[string]string{"orders-0": "a0"}}
		record.Apply(action.RecordApplied{Version: version})(&r)
		if !maps.Equal(r.Flushed, want) {
			t.Errorf("after %s: %v", version, r.Flushed)
		}
	}
}

// Entries are added after it was written down how often each member saved its
// state; a second time keeps when it began.
func TestNudgeTwice(t *testing.T) {
	formed(t, func(w *world) {
		w.etcd.saved = map[string]int64{"orders-0": 4, "orders-1": 5}
		w.mustDo(action.ForceSnapshot{Member: "orders-0", MemberID: "a0", Template: "t"})
		first := w.record().Nudged
		if want := map[string]int64{"orders-0": 4, "orders-1": 5, "orders-2": 0}; !reflect.DeepEqual(first.Before, want) || first.Template != "t" {
			t.Errorf("%+v, want %v", first, want)
		}
		time.Sleep(time.Minute)
		w.mustDo(action.ForceSnapshot{Member: "orders-0", MemberID: "a0", Template: "t"})
		second := w.record().Nudged
		if !second.Since.Equal(first.Since) || !second.At.After(first.At) || second.Before["orders-0"] != 5 || count(w.etcd.calls, "nudge") != 2 {
			t.Errorf("%+v after %+v, calls %q", second, first, w.etcd.calls)
		}
		w.mustDo(action.ForceSnapshot{Member: "orders-0", MemberID: "a0", Template: "u"})
		if third := w.record().Nudged; third.Since.Equal(first.Since) {
			t.Errorf("another template: %+v", third)
		}
		down := w.etcd.version
		w.etcd.version = func(member string) string {
			if member == "orders-1" {
				return ""
			}
			return down(member)
		}
		if err := w.do(action.ForceSnapshot{Member: "orders-0", MemberID: "a0", Template: "v"}); err == nil || !strings.Contains(err.Error(), "orders-1 does not say how often it has saved its state") {
			t.Errorf("%v", err)
		}
		if w.record().Nudged.Template == "v" {
			t.Error("it was written down all the same")
		}
	})
}

// The end of a roll that a commit has overtaken keeps the template of that roll:
// only the next roll brings the next one, behind its gates.
func TestEndRollKeepsTheTemplate(t *testing.T) {
	formed(t, func(w *world) {
		hash := w.set().Spec.Template.Annotations[naming.AnnotationTemplateHash]
		w.commit(toVersion("3.6.15"))
		for range 2 {
			w.mustDo(action.EndRoll{Replicas: 2})
			if set := w.set(); set.Spec.Template.Annotations[naming.AnnotationTemplateHash] != hash || partitionOf(set) != 2 {
				t.Errorf("partition %d, template %v", partitionOf(set), set.Spec.Template.Annotations)
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
			v := w.look()
			v.set = v.set.DeepCopy()
			v.set.ManagedFields = fields
			if err := w.r.executor.execute(w.Context(), v, action.EndRoll{Replicas: 2}); err == nil || !strings.Contains(err.Error(), "quorate does not own its template") {
				t.Errorf("quorate owns %s: %v", name, err)
			}
		}
	}, toVersion("3.6.16"))
}

// edit changes the cluster's record.
func (w *world) edit(change func(*record.Record)) {
	w.Helper()
	_, err := (record.Store{Kube: w.api}).Update(w.Context(), w.wish.EtcdCluster, w.r.options.Owner, func(r *record.Record) error {
		change(r)
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
}
