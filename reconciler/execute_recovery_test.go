package reconciler

import (
	"cmp"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/restore"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// loseQuorum leaves one member that answers, for itself: at revision 7. The others
// have lost their volumes.
func loseQuorum(w *world, left string) {
	for _, name := range []string{"orders-0", "orders-1", "orders-2"} {
		pod := *w.pod(name)
		pod.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
		w.put(corev1.SchemeGroupVersion.WithResource("pods"), &pod)
	}
	w.etcd.change = func(r *state.Round) {
		*r = state.Round{At: r.At, Problem: left + ": linearizable read: context deadline exceeded", Members: r.Members}
		for i := range r.Members {
			m := &r.Members[i]
			m.Leader = ""
			if m.Problem != "" {
				continue
			}
			if m.Problem = "linearizable read: context deadline exceeded"; m.Name != left {
				*m = state.Member{Name: m.Name, Problem: "status: connection refused"}
			}
		}
	}
	synctest.Wait()
}

// asksRecovery is a commit that asks for a recovery of c1.
func asksRecovery(member, objectURL string) func(*schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) {
		c.Spec.Recovery = schema.RecoverySpec{ClusterID: "c1", Member: member, ObjectURL: objectURL}
	}
}

// jobs are the Jobs that exist.
func jobsOf(w *world) []batchv1.Job {
	w.Helper()
	list, err := w.api.BatchV1().Jobs("shop").List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return list.Items
}

// jobEnded lets the Job end.
func jobEnded(w *world) {
	w.Helper()
	job := jobsOf(w)[0]
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	if _, err := w.api.BatchV1().Jobs("shop").UpdateStatus(w.Context(), &job, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// startsAlone lets the first member of the recovered cluster answer.
func startsAlone(w *world, name string, revision int64) {
	g := w.record().Recovering
	w.etcd.change = func(r *state.Round) {
		*r = state.Round{At: r.At, Deep: r.Deep, ClusterID: g.NewClusterID, ClusterVersion: r.ClusterVersion, Members: []state.Member{{
			ID: g.NewMemberID, Name: name, Leader: g.NewMemberID, Revision: revision, Version: w.versionOf(name), Term: 2,
		}}}
	}
}

// actions are what quorate did since the log began.
func actions(w *world) []string { return w.lines("step", "action") }

// 84: from the loss to its end, with what a person commits: the loss is held, and
// the commit carried out, each action twice.
func TestALostClusterIsRecovered(t *testing.T) {
	formed(t, func(w *world) {
		loseQuorum(w, "orders-1")
		lost := w.record()
		w.mustPass()
		if p, err := w.r.Plan(w.Context(), w.wish); err != nil || p.Hold == nil || p.Hold.Rule != "recovery" || len(p.Steps) > 0 {
			t.Fatalf("%s, %v", p.Text(), err)
		}
		w.commit(asksRecovery("orders-1", ""))
		oneShot := "c1 from member orders-1"
		stepsOf(w, action.BeginRecovery{OneShot: oneShot, ClusterID: "c1", Member: "orders-1", MemberID: "a1", Revision: 7, Version: "3.6.16"})
		g := w.record().Recovering
		wantCluster, wantMember, err := restore.Identity(g.Token, "orders-1", "https://orders-1.orders-peers.shop.svc:2380")
		if err != nil || g.NewClusterID != wantCluster || g.NewMemberID != wantMember || g.FormerToken != lost.Token || g.Token == lost.Token {
			t.Errorf("recovering %+v, want %s and %s: %v", g, wantCluster, wantMember, err)
		}
		if r := w.record(); r.ClusterID != "c1" || r.Token != lost.Token || len(r.Members) != 3 {
			t.Errorf("the identity has changed too early: %+v", r)
		}
		stepsOf(w, action.ResizeSet{SetUID: string(w.set().UID), From: 3, To: 0, Partition: 3})
		if drift := w.look().observed.Objects; hasDrift(drift) {
			t.Errorf("no pods are drift: %+v", drift)
		}
		stepsOf(w, action.RestoreVolume{Member: "orders-1", Claim: "data-orders-1", ClaimUID: claimUID(w, "orders-1"), ClusterID: g.NewClusterID})
		if all := jobsOf(w); len(all) != 1 {
			t.Fatalf("%d Jobs", len(all))
		}
		if got := w.look().observed.Restore; got.State != state.RestoreRunning {
			t.Errorf("%+v", got)
		}
		jobEnded(w)
		if got := w.look().observed.Restore; got.State != state.RestoreDone {
			t.Errorf("%+v", got)
		}
		stepsOf(w, action.AdoptRecovery{From: "c1", ClusterID: g.NewClusterID, Member: "orders-1", MemberID: g.NewMemberID})
		if r := w.record(); r.ClusterID != g.NewClusterID || r.Token != g.Token || !reflect.DeepEqual(r.Members, map[string]string{"orders-1": g.NewMemberID}) {
			t.Errorf("the record is %+v", r)
		}
		if got := w.look().observed.Restore; got != (state.Restore{}) {
			t.Errorf("what is over goes on: %+v", got)
		}
		stepsOf(w, action.ResizeSet{SetUID: string(w.set().UID), From: 0, To: 2, Partition: 2}, action.EndRecovery{OneShot: oneShot, ClusterID: "c1"})
		r := w.record()
		if all := jobsOf(w); len(all) > 0 {
			t.Errorf("%d Jobs are left", len(all))
		}
		if len(r.Recovered) != 1 || r.Recovering != nil || r.Recovered[0].Token != lost.Token || !reflect.DeepEqual(r.Recovered[0].Members, lost.Members) {
			t.Errorf("the record is %+v", r)
		}
		if kept := w.look().observed.Record.Kept; !kept["orders-0"] || len(claimsOf(w)) != 3 {
			t.Errorf("kept are %v of %v", kept, claimsOf(w))
		}
	})
}

func hasDrift(objects []state.Object) bool {
	for _, o := range objects {
		if o.Kind == "StatefulSet" && o.State != state.ObjectInSync {
			return true
		}
	}
	return false
}

// 84, I18: the same by itself, pass after pass, once Git says so; and never again.
func TestRecoveryRunsToItsEndByItself(t *testing.T) {
	formed(t, func(w *world) {
		loseQuorum(w, "orders-1")
		for range 3 {
			w.mustPass()
		}
		if done := actions(w); len(done) > 0 {
			t.Fatalf("without a word in Git: %q", done)
		}
		w.commit(asksRecovery("orders-1", ""))
		for range 20 {
			w.mustPass()
			time.Sleep(time.Second)
			switch r := w.record(); {
			case r.Recovering != nil && len(jobsOf(w)) == 1 && r.ClusterID == "c1":
				jobEnded(w)
			case r.Recovering != nil && r.ClusterID != "c1":
				startsAlone(w, "orders-1", 7+situation.RecoveryBump)
			}
			if len(w.record().Recovered) > 0 {
				break
			}
		}
		if r := w.record(); len(r.Recovered) != 1 || r.Recovering != nil || r.ClusterID == "c1" || len(r.Members) != 1 {
			t.Fatalf("the record is %+v, done was %q", r, actions(w))
		}
		before := len(jobsOf(w))
		for range 5 {
			w.mustPass()
			time.Sleep(time.Second)
		}
		if len(w.record().Recovered) != 1 || len(jobsOf(w)) != before || w.record().Recovering != nil {
			t.Errorf("it was done again: %q", actions(w))
		}
	})
}

// What the Job runs as, on what, and what nobody must see in it.
func TestRestoreJob(t *testing.T) {
	formed(t, func(w *world) {
		g := record.Recovering{
			ClusterID: "c1", FormerToken: "orders-11", Token: "orders-2233445566", Member: "orders-1",
			ObjectURL: "s3://backups/1.db", Verified: backup.Verified{SHA256: "abc", Size: 42, Revision: 7},
		}
		job := jobs.RenderRestore(w.wish, w.set(), "quorate:1", "data-orders-1", g)
		pod, member := job.Spec.Template, w.set().Spec.Template
		if job.Name != "orders-recovery-22334455" || job.Namespace != "shop" {
			t.Errorf("it is %s/%s", job.Namespace, job.Name)
		}
		// A member's label would put it behind the Service, and into the budget.
		if pod.Labels[naming.LabelCluster] != "" || job.Labels[naming.LabelCluster] != "" || pod.Labels["app.kubernetes.io/name"] == "etcd" {
			t.Errorf("labels %v", pod.Labels)
		}
		if !reflect.DeepEqual(pod.Spec.SecurityContext, member.Spec.SecurityContext) || pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "data-orders-1" {
			t.Errorf("the pod is %+v", pod.Spec)
		}
		step := pod.Spec.Containers[0]
		want := "restore-volume --volume=/var/lib/etcd --member=orders-1 --peer-url=https://orders-1.orders-peers.shop.svc:2380 " +
			"--former-token=orders-11 --token=orders-2233445566 --at-least=7 --sha256=abc --size=42"
		if got := strings.Join(step.Args, " "); got != want || step.Image != "quorate:1" {
			t.Errorf("%s runs %s", step.Image, got)
		}
		if e := step.Env; len(e) != 2 || e[0].Name != jobs.BackupURLEnv || e[0].Value != "" || e[0].ValueFrom.SecretKeyRef.Name != job.Name || e[1].Name != jobs.BackupCAEnv {
			t.Errorf("environment %+v", e)
		}
		g.ObjectURL = ""
		if step := jobs.RenderRestore(w.wish, nil, "quorate:1", "data-orders-1", g).Spec.Template.Spec.Containers[0]; len(step.Env) > 0 || len(step.Args) != 7 {
			t.Errorf("without a backup: %+v", step)
		}
	})
}

// 135: a pod that somebody made, such as a copy of a member's for looking at its data,
// keeps the volume that it uses from being restored onto, and is named; no other does.
func TestRestoreVolumeNamesWhoUsesIt(t *testing.T) {
	formed(t, func(w *world) {
		w.mustDo(action.BeginRecovery{OneShot: "c1 from member orders-1", ClusterID: "c1", Member: "orders-1", Revision: 7})
		w.mustDo(action.ResizeSet{SetUID: string(w.set().UID), From: 3, To: 0, Partition: 3})
		w.settle()
		a := action.RestoreVolume{Member: "orders-1", Claim: "data-orders-1", ClaimUID: claimUID(w, "orders-1"), ClusterID: w.record().Recovering.NewClusterID}
		job := jobs.RestoreName("orders", *w.record().Recovering)
		pod := func(name, claim, ofJob string, labels map[string]string, phase corev1.PodPhase) {
			if ofJob != "" {
				labels = map[string]string{batchv1.JobNameLabel: ofJob}
			}
			w.put(podsResource(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: labels},
				Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
				}}, {Name: "none"}}},
				Status: corev1.PodStatus{Phase: phase},
			})
		}
		refused := func() {
			t.Helper()
			backuptest.WantError(t, w.do(a), "restore onto volume claim data-orders-1", "the pod looks uses it", "delete that pod")
			if len(jobsOf(w)) > 0 {
				t.Fatal("there is a Job")
			}
		}
		pod("looks", "data-orders-1", "", nil, corev1.PodRunning)
		refused()
		pod("looks", "data-orders-1", "", naming.OwnLabels(w.wish.EtcdCluster), corev1.PodPending)
		refused()
		pod("looks", "data-orders-1", "another", nil, corev1.PodRunning)
		refused()
		pod("looks", "data-orders-2", "", nil, corev1.PodRunning) // the cases come in any order
		for name, harmless := range map[string]func(){
			"another volume":  func() { pod("looks", "data-orders-2", "", naming.OwnLabels(w.wish.EtcdCluster), corev1.PodRunning) },
			"a member's name": func() { pod("orders-1", "data-orders-2", "", nil, corev1.PodRunning) },
			"it has ended":    func() { pod("looks", "data-orders-1", "", nil, corev1.PodSucceeded) },
			"it has failed":   func() { pod("looks", "data-orders-1", "", nil, corev1.PodFailed) },
			"the Job's own":   func() { pod("looks", "data-orders-1", job, nil, corev1.PodRunning) },
		} {
			harmless()
			if err := w.do(a); err != nil || len(jobsOf(w)) != 1 {
				t.Errorf("%s: %v, %d Jobs", name, err, len(jobsOf(w)))
			}
		}
	})
}

// I3, I21: nothing is restored under a member that runs, on another claim than the
// one that was seen, or for a recovery that the record does not speak of.
func TestRestoreVolumeLooksAgain(t *testing.T) {
	formed(t, func(w *world) {
		begin := action.BeginRecovery{OneShot: "c1 from member orders-1", ClusterID: "c1", Member: "orders-1", Revision: 7}
		refused := func(why string, a action.RestoreVolume) {
			t.Helper()
			if err := w.do(a); !errors.Is(err, state.ErrChanged) {
				t.Errorf("%s: %v", why, err)
			}
			if len(jobsOf(w)) > 0 {
				t.Fatalf("%s: there is a Job", why)
			}
		}
		a := action.RestoreVolume{Member: "orders-1", Claim: "data-orders-1", ClaimUID: claimUID(w, "orders-1")}
		refused("no recovery", a)
		w.mustDo(begin)
		a.ClusterID = w.record().Recovering.NewClusterID
		refused("members run", a)
		w.mustDo(action.ResizeSet{SetUID: string(w.set().UID), From: 3, To: 0, Partition: 3})
		w.settle()
		other := a
		other.ClaimUID = "another"
		refused("another claim", other)
		other = a
		other.ClusterID = "c3"
		refused("another recovery", other)
		other = a
		other.Member = "orders-2"
		refused("another member", other)
		claim := w.claims()[1].DeepCopy()
		going := claim.DeepCopy()
		going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: time.Now()}, []string{"test/hold"}
		w.put(claimsResource(), going)
		refused("a claim that is about to go", a)
		w.put(claimsResource(), claim)
		w.mustDo(a)
		ends := func(when, oneShot string) {
			t.Helper()
			if err := w.do(action.EndRecovery{OneShot: oneShot, ClusterID: "c1"}); !errors.Is(err, state.ErrChanged) || len(jobsOf(w)) != 1 {
				t.Errorf("an end %s: %v, %d Jobs", when, err, len(jobsOf(w)))
			}
		}
		ends("before the cluster has its new identity", begin.OneShot)
		g := w.record().Recovering
		w.mustDo(action.AdoptRecovery{From: "c1", ClusterID: g.NewClusterID, Member: g.Member, MemberID: g.NewMemberID})
		if err := w.do(a); !errors.Is(err, state.ErrChanged) {
			t.Errorf("when the cluster has its new identity: %v", err)
		}
		ends("of another recovery", "c1 from member orders-2")
	})
}

// I13, I24: the record changes only from what an action rests on.
func TestRecoveryRecordTransitions(t *testing.T) {
	g := record.Recovering{OneShot: "a", ClusterID: "c1", Token: "t2", NewClusterID: "c2", Member: "orders-1", NewMemberID: "b1"}
	fresh := func() record.Record {
		return record.Record{ClusterID: "c1", Token: "t1", Members: map[string]string{"orders-1": "a1"}}
	}
	adopt := action.AdoptRecovery{From: "c1", ClusterID: "c2", Member: "orders-1", MemberID: "b1"}
	r := fresh()
	r.Joining = &record.Joining{Member: "orders-3"}
	if r.AdoptRecovery(adopt) || r.EndRecovery(action.EndRecovery{OneShot: "a"}, time.Now()) {
		t.Error("what has not begun goes on")
	}
	if !r.BeginRecovery(g) || r.Joining != nil || r.Recovering.FormerToken != "t1" {
		t.Errorf("it does not begin: %+v", r)
	}
	other := g
	other.OneShot = "b"
	if r.BeginRecovery(other) {
		t.Error("another one begins meanwhile")
	}
	if r.EndRecovery(action.EndRecovery{OneShot: "a"}, time.Now()) {
		t.Error("it ends before the identity has changed")
	}
	for _, wrong := range []action.AdoptRecovery{
		{From: "c0", ClusterID: "c2", Member: "orders-1", MemberID: "b1"},
		{From: "c1", ClusterID: "c3", Member: "orders-1", MemberID: "b1"},
		{From: "c1", ClusterID: "c2", Member: "orders-2", MemberID: "b1"},
		{From: "c1", ClusterID: "c2", Member: "orders-1", MemberID: "b2"},
	} {
		if r.AdoptRecovery(wrong) || r.ClusterID != "c1" {
			t.Errorf("%+v is taken", wrong)
		}
	}
	for range 2 {
		if !r.AdoptRecovery(adopt) || r.Token != "t2" {
			t.Errorf("the identity is %+v", r)
		}
	}
	for range 2 {
		if !r.EndRecovery(action.EndRecovery{OneShot: "a"}, time.Now()) || len(r.Recovered) != 1 {
			t.Errorf("the end is %+v", r)
		}
	}
	for name, test := range map[string]struct {
		edit func(*record.Record)
		a    action.EndRecovery
		want bool
	}{
		"a restore that is over":                 {func(r *record.Record) { r.Restored = &record.Restored{} }, action.EndRecovery{OneShot: "restore back"}, true},
		"a restore that never was":               {func(*record.Record) {}, action.EndRecovery{OneShot: "restore back"}, false},
		"a recovery that never was, restored":    {func(r *record.Record) { r.Restored = &record.Restored{} }, action.EndRecovery{OneShot: "b", ClusterID: "c1"}, false},
		"a restore that is not over":             {func(r *record.Record) { r.Restored, r.Recovering = &record.Restored{}, &g }, action.EndRecovery{OneShot: "restore back"}, false},
		"another recovery than that under way":   {func(r *record.Record) { r.Recovering, r.ClusterID = &g, "c2" }, action.EndRecovery{OneShot: "b", ClusterID: "c1"}, false},
		"one recovery, although another is over": {func(r *record.Record) { r.Recovered = []record.Recovered{{OneShot: "b"}} }, action.EndRecovery{OneShot: "a", ClusterID: "c1"}, false},
	} {
		r := fresh()
		test.edit(&r)
		if got := r.EndRecovery(test.a, time.Now()); got != test.want || (r.Recovering != nil) != strings.Contains(name, "not over") && !strings.Contains(name, "under way") {
			t.Errorf("the end of %s: %t, %+v", name, got, r)
		}
	}
	// What the restore before it has told of the logs is long over.
	restored := fresh()
	restored.BornOn, restored.Restored = "3.6", &record.Restored{EtcdVersion: "3.5.35", At: time.Now()}
	if !restored.BeginRecovery(g) || !restored.AdoptRecovery(adopt) || restored.BornOn != "3.6" {
		t.Errorf("born on %s", restored.BornOn)
	}
	wrong := fresh()
	wrong.Recovering, wrong.ClusterID = &g, "c9"
	if wrong.AdoptRecovery(adopt) || wrong.ClusterID != "c9" {
		t.Error("another cluster gets the new identity")
	}
	wrong.Recovering = nil
	if wrong.BeginRecovery(g) {
		t.Error("another cluster is recovered")
	}
}

// I13: the end of a restore is written down once, for that restore, and when its
// first member stands.
func TestTheEndOfARestoreIsWrittenOnce(t *testing.T) {
	before, now := time.Now().Add(-time.Hour), time.Now().UTC()
	for name, test := range map[string]struct {
		from record.Restore
		goes *record.Recovering
		want bool
		at   time.Time
	}{
		"its end":             {record.Restore{Restored: &record.Restored{Name: "back"}}, nil, true, now},
		"one that was before": {record.Restore{Restored: &record.Restored{Name: "back", At: before}}, nil, true, before},
		"another's":           {record.Restore{Restored: &record.Restored{Name: "forth"}}, nil, false, time.Time{}},
		"none":                {record.Restore{}, nil, false, time.Time{}},
		"while it goes on":    {record.Restore{Restored: &record.Restored{Name: "back"}}, &record.Recovering{}, false, time.Time{}},
	} {
		r := record.Record{Restore: test.from, Recovery: record.Recovery{Recovering: test.goes}}
		got := r.EndRestore(action.EndRestore{Restore: "back"}, now)
		if at := cmp.Or(r.Restored, &record.Restored{}).At; got != test.want || !at.Equal(test.at) {
			t.Errorf("%s: %t, at %s", name, got, at)
		}
	}
}

// 120: a restore that failed says why, in the words of its newest pod.
func TestRestoreThatFails(t *testing.T) {
	pod := func(age time.Duration, said string) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Now().Add(-age))},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: "restore", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: said}},
			}}},
		}
	}
	failed := batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Message: "too often"}}}}
	if s := restoreStateOf(&failed, []corev1.Pod{pod(time.Hour, "first"), pod(time.Minute, "no space left")}); s.State != state.RestoreFailed || s.Detail != "restore: no space left" {
		t.Errorf("%+v", s)
	}
	if s := restoreStateOf(&failed, nil); s.Detail != "too often" {
		t.Errorf("%+v", s)
	}
	for _, c := range []batchv1.JobCondition{
		{}, {Type: batchv1.JobFailed, Status: corev1.ConditionFalse}, {Type: batchv1.JobComplete, Status: corev1.ConditionUnknown}, {Type: batchv1.JobSuspended, Status: corev1.ConditionTrue},
	} {
		job := batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{c}}}
		if s := restoreStateOf(&job, nil); s.State != state.RestoreRunning || s.Detail != "" {
			t.Errorf("with the condition %+v: %+v", c, s)
		}
	}
	if s := restoreStateOf(&batchv1.Job{}, []corev1.Pod{pod(time.Minute, "no space left")}); s.State != state.RestoreRunning || !strings.Contains(s.Detail, "no space left") {
		t.Errorf("%+v", s)
	}
}

// The planner and the restore mean the same revisions.
func TestBumpIsTheSame(t *testing.T) {
	if situation.RecoveryBump != restore.RevisionBump {
		t.Error("the planner awaits another revision than the restore makes")
	}
}
