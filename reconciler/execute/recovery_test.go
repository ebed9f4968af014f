package execute_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/compression"
	"github.com/quorate/quorate/reconciler/execute"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/restore/identity"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/stores"
)

// loseQuorum leaves one member that answers, for itself: at revision 7. The others
// have lost their volumes.
func loseQuorum(w *reconcilertest.World, left string) {
	for _, name := range []string{"orders-0", "orders-1", "orders-2"} {
		pod := *w.Pod(name)
		pod.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
		w.Put(corev1.SchemeGroupVersion.WithResource("pods"), reconcilertest.ReadyPod(&pod, false))
	}
	w.Etcd.Change = func(r *state.Round) {
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

// actions are what quorate did since the log began.
func actions(w *reconcilertest.World) []string { return w.Lines("step started", "action") }

// 271: what has come back while the backup was read is not recovered.
func TestNoRecoveryBeginsWhereAQuorumIsReady(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		loseQuorum(w, "orders-1")
		begin := action.BeginRecovery{OneShot: "c1 from member orders-1", ClusterID: "c1", Member: "orders-1", MemberID: "a1", Revision: 7, Version: "3.6.16"}
		v := w.Look()
		for _, name := range []string{"orders-0", "orders-2"} {
			w.Put(corev1.SchemeGroupVersion.WithResource("pods"), reconcilertest.ReadyPod(w.Pod(name), true))
		}
		if err := w.R.Executor.Execute(w.Context(), v, begin); !errors.Is(err, state.ErrChanged) || w.Record().Recovering != nil {
			t.Errorf("%v, %+v", err, w.Record().Recovering)
		}
		w.Put(corev1.SchemeGroupVersion.WithResource("pods"), reconcilertest.ReadyPod(w.Pod("orders-2"), false))
		if err := w.R.Executor.Execute(w.Context(), v, begin); err != nil || w.Record().Recovering == nil {
			t.Errorf("one of three is no quorum: %v", err)
		}
	})
}

// 270: three that are ready and do not answer quorate are held as out of reach, and a
// recovery in Git changes nothing but the record, which notes it as refused.
func TestWhatIsReadyAndOutOfReachIsNotRecovered(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Etcd.Change = func(r *state.Round) {
			r.Problem = "orders-0: status: context deadline exceeded"
			for i := range r.Members {
				r.Members[i] = state.Member{Name: r.Members[i].Name, Problem: "status: context deadline exceeded"}
			}
		}
		w.MustPass()
		w.WantHold(decision.Unreachable, "reachable", "3 of 3 pods are ready")
		w.Commit(execute.AsksRecovery("orders-1", ""))
		for range 5 {
			w.MustPass()
		}
		w.WantHold(decision.Unreachable, "reachable", "spec.recovery is refused")
		if r := w.Record(); r.Recovering != nil || r.RefusedRecovery != "c1 from member orders-1" || *w.Set().Spec.Replicas != 3 {
			t.Errorf("%+v, %d replicas", r, *w.Set().Spec.Replicas)
		}
	})
}

// 84: from the loss to its end, with what a person commits: the loss is held, and
// the commit applied, each action twice.
func TestALostClusterIsRecovered(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		loseQuorum(w, "orders-1")
		lost := w.Record()
		w.MustPass()
		if p, err := w.R.Plan(w.Context(), w.Wish); err != nil || p.Hold == nil || p.Hold.Rule != "recovery" || len(p.Steps) > 0 {
			t.Fatalf("%s, %v", p.Text(), err)
		}
		w.Commit(execute.AsksRecovery("orders-1", ""))
		oneShot := "c1 from member orders-1"
		stepsOf(w, action.BeginRecovery{OneShot: oneShot, ClusterID: "c1", Member: "orders-1", MemberID: "a1", Revision: 7, Version: "3.6.16"})
		g := w.Record().Recovering
		wantCluster, wantMember, err := identity.Of(g.Token, "orders-1", "https://orders-1.orders-peers.shop.svc:2380")
		if err != nil || g.NewClusterID != wantCluster || g.NewMemberID != wantMember || g.FormerToken != lost.Token || g.Token == lost.Token {
			t.Errorf("recovering %+v, want %s and %s: %v", g, wantCluster, wantMember, err)
		}
		if r := w.Record(); r.ClusterID != "c1" || r.Token != lost.Token || len(r.Members) != 3 {
			t.Errorf("the identity has changed too early: %+v", r)
		}
		stepsOf(w, action.ResizeSet{SetUID: string(w.Set().UID), From: 3, To: 0, Partition: 3})
		if drift := w.Look().Observed.Objects; execute.HasDrift(drift) {
			t.Errorf("no pods are drift: %+v", drift)
		}
		stepsOf(w, action.RestoreVolume{Member: "orders-1", Claim: "data-orders-1", ClaimUID: claimUID(w, "orders-1"), ClusterID: g.NewClusterID})
		if all := reconcilertest.JobsOf(w); len(all) != 1 {
			t.Fatalf("%d Jobs", len(all))
		}
		if got := w.Look().Observed.Restore; got.State != state.RestoreRunning {
			t.Errorf("%+v", got)
		}
		reconcilertest.JobEnded(w)
		if got := w.Look().Observed.Restore; got.State != state.RestoreDone {
			t.Errorf("%+v", got)
		}
		stepsOf(w, action.AdoptRecovery{From: "c1", ClusterID: g.NewClusterID, Member: "orders-1", MemberID: g.NewMemberID})
		if r := w.Record(); r.ClusterID != g.NewClusterID || r.Token != g.Token || !reflect.DeepEqual(r.Members, map[string]string{"orders-1": g.NewMemberID}) {
			t.Errorf("the record is %+v", r)
		}
		if got := w.Look().Observed.Restore; got != (state.Restore{}) {
			t.Errorf("what is over goes on: %+v", got)
		}
		for _, volume := range w.Look().Observed.Volumes {
			if volume.Keeps != "c1" {
				t.Errorf("that %s keeps what is left of c1 is not on it: %q", volume.Claim, volume.Keeps)
			}
		}
		stepsOf(w, action.ResizeSet{SetUID: string(w.Set().UID), From: 0, To: 2, Partition: 2}, action.EndRecovery{OneShot: oneShot, ClusterID: "c1"})
		r := w.Record()
		if all := reconcilertest.JobsOf(w); len(all) > 0 {
			t.Errorf("%d Jobs are left", len(all))
		}
		if len(r.Recovered) != 1 || r.Recovering != nil || r.Recovered[0].Token != lost.Token || !reflect.DeepEqual(r.Recovered[0].Members, lost.Members) {
			t.Errorf("the record is %+v", r)
		}
		if kept := w.Look().Observed.Record.Kept; !kept["orders-0"] || len(claimsOf(w)) != 3 {
			t.Errorf("kept are %v of %v", kept, claimsOf(w))
		}
	})
}

// 84, I18: the same on its own, pass after pass, once Git says so; and never again.
func TestRecoveryRunsToItsEndByItself(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		loseQuorum(w, "orders-1")
		for range 3 {
			w.MustPass()
		}
		if done := actions(w); len(done) > 0 {
			t.Fatalf("without a word in Git: %q", done)
		}
		w.Commit(execute.AsksRecovery("orders-1", ""))
		for range 20 {
			w.MustPass()
			time.Sleep(time.Second)
			switch r := w.Record(); {
			case r.Recovering != nil && len(reconcilertest.JobsOf(w)) == 1 && r.ClusterID == "c1":
				reconcilertest.JobEnded(w)
			case r.Recovering != nil && r.ClusterID != "c1":
				reconcilertest.StartsAlone(w, "orders-1", 7+state.RevisionBump)
			}
			if len(w.Record().Recovered) > 0 {
				break
			}
		}
		if r := w.Record(); len(r.Recovered) != 1 || r.Recovering != nil || r.ClusterID == "c1" || len(r.Members) != 1 {
			t.Fatalf("the record is %+v, done was %q", r, actions(w))
		}
		before := len(reconcilertest.JobsOf(w))
		for range 5 {
			w.MustPass()
			time.Sleep(time.Second)
		}
		if len(w.Record().Recovered) != 1 || len(reconcilertest.JobsOf(w)) != before || w.Record().Recovering != nil {
			t.Errorf("it was done again: %q", actions(w))
		}
	})
}

// What the Job runs as, on what, and what nobody must see in it.
func TestRestoreJob(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		g := record.Recovering{
			ClusterID: "c1", FormerToken: "orders-11", Token: "orders-2233445566", Member: "orders-1",
			ObjectURL: "s3://backups/1.db", Verified: backup.Verified{SHA256: "abc", Size: 42, Revision: 7},
		}
		job := jobs.RenderRestore(w.Wish, w.Set(), "quorate:1", "data-orders-1", g, stores.Way{})
		pod, member := job.Spec.Template, w.Set().Spec.Template
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
			"--former-token=orders-11 --token=orders-2233445566 --at-least=7 --sha256=abc --size=42 --snapshot-size=42 --offer=/etc/quorate/offer"
		if got := strings.Join(step.Args, " "); got != want || step.Image != "quorate:1" {
			t.Errorf("%s runs %s", step.Image, got)
		}
		// The offer is a mount, which is renewed in a pod that runs, and no environment.
		if offer := pod.Spec.Volumes[1]; len(step.Env) > 0 || offer.Secret.SecretName != job.Name || step.VolumeMounts[1].Name != offer.Name || !step.VolumeMounts[1].ReadOnly {
			t.Errorf("it reads %+v, environment %+v", pod.Spec.Volumes, step.Env)
		}
		if limit := *job.Spec.ActiveDeadlineSeconds; limit != 24*3600 {
			t.Errorf("it may take %d s", limit)
		}
		// 206: a try that ends for want of room does not count.
		if rule := job.Spec.PodFailurePolicy.Rules[0]; rule.Action != batchv1.PodFailurePolicyActionIgnore || *rule.OnExitCodes.ContainerName != step.Name || !slices.Equal(rule.OnExitCodes.Values, []int32{jobs.ExitNoRoom}) {
			t.Errorf("what fails: %+v", rule)
		}
		g.Size = 8 << 30
		if limit := *jobs.RenderRestore(w.Wish, nil, "quorate:1", "data-orders-1", g, stores.Way{}).Spec.ActiveDeadlineSeconds; limit != 24*3600+8<<10 {
			t.Errorf("a large one may take %d s", limit)
		}
		g.Compression, g.SnapshotSize = compression.Zstd, 100
		if step := jobs.RenderRestore(w.Wish, w.Set(), "quorate:1", "data-orders-1", g, stores.Way{}).Spec.Template.Spec.Containers[0]; !slices.Contains(step.Args, "--compression=zstd") || !slices.Contains(step.Args, "--snapshot-size=100") {
			t.Errorf("of a compressed one: %q", step.Args)
		}
		g.Compression, g.SnapshotSize = "", 0
		g.AcceptHashMismatch = "abc"
		job = jobs.RenderRestore(w.Wish, w.Set(), "quorate:1", "data-orders-1", g, stores.Way{})
		if args := job.Spec.Template.Spec.Containers[0].Args; job.Name != "orders-recovery-22334455-2" || !slices.Contains(args, "--accept-hash-mismatch=abc") {
			t.Errorf("what Git accepts: Job %s with %v", job.Name, args)
		}
		g.ObjectURL, g.AcceptHashMismatch = "", ""
		pod.Spec = jobs.RenderRestore(w.Wish, nil, "quorate:1", "data-orders-1", g, stores.Way{}).Spec.Template.Spec
		if step := pod.Spec.Containers[0]; len(step.Env) > 0 || len(step.Args) != 7 || len(pod.Spec.Volumes) != 1 {
			t.Errorf("without a backup: %+v", step)
		}
	})
}

// 135: a pod that somebody made, such as a copy of a member's for looking at its data,
// keeps the volume that it uses from being restored onto, and is named; no other does.
func TestRestoreVolumeNamesWhoUsesIt(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		reconcilertest.Unready(w)
		w.MustDo(action.BeginRecovery{OneShot: "c1 from member orders-1", ClusterID: "c1", Member: "orders-1", Revision: 7})
		w.MustDo(action.ResizeSet{SetUID: string(w.Set().UID), From: 3, To: 0, Partition: 3})
		w.Settle()
		a := action.RestoreVolume{Member: "orders-1", Claim: "data-orders-1", ClaimUID: claimUID(w, "orders-1"), ClusterID: w.Record().Recovering.NewClusterID}
		job := jobs.RestoreName("orders", *w.Record().Recovering)
		pod := func(name, claim, ofJob string, labels map[string]string, phase corev1.PodPhase) {
			if ofJob != "" {
				labels = map[string]string{batchv1.JobNameLabel: ofJob}
			}
			w.Put(reconcilertest.PodsResource(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: labels},
				Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
				}}, {Name: "none"}}},
				Status: corev1.PodStatus{Phase: phase},
			})
		}
		refused := func() {
			t.Helper()
			backuptest.WantError(t, w.Do(a), "restore onto volume claim data-orders-1", "the pod looks uses it", "delete that pod")
			if len(reconcilertest.JobsOf(w)) > 0 {
				t.Fatal("there is a Job")
			}
		}
		pod("looks", "data-orders-1", "", nil, corev1.PodRunning)
		refused()
		pod("looks", "data-orders-1", "", naming.OwnLabels(w.Wish.EtcdCluster), corev1.PodPending)
		refused()
		pod("looks", "data-orders-1", "another", nil, corev1.PodRunning)
		refused()
		pod("looks", "data-orders-2", "", nil, corev1.PodRunning) // the cases come in any order
		for name, harmless := range map[string]func(){
			"another volume":  func() { pod("looks", "data-orders-2", "", naming.OwnLabels(w.Wish.EtcdCluster), corev1.PodRunning) },
			"a member's name": func() { pod("orders-1", "data-orders-2", "", nil, corev1.PodRunning) },
			"it has ended":    func() { pod("looks", "data-orders-1", "", nil, corev1.PodSucceeded) },
			"it has failed":   func() { pod("looks", "data-orders-1", "", nil, corev1.PodFailed) },
			"the Job's own":   func() { pod("looks", "data-orders-1", job, nil, corev1.PodRunning) },
		} {
			harmless()
			if err := w.Do(a); err != nil || len(reconcilertest.JobsOf(w)) != 1 {
				t.Errorf("%s: %v, %d Jobs", name, err, len(reconcilertest.JobsOf(w)))
			}
		}
	})
}

// I3, I21: nothing is restored under a member that runs, on another claim than the
// one that was seen, or for a recovery that the record does not speak of.
func TestRestoreVolumeLooksAgain(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		reconcilertest.Unready(w)
		begin := action.BeginRecovery{OneShot: "c1 from member orders-1", ClusterID: "c1", Member: "orders-1", Revision: 7}
		refused := func(why string, a action.RestoreVolume) {
			t.Helper()
			if err := w.Do(a); !errors.Is(err, state.ErrChanged) {
				t.Errorf("%s: %v", why, err)
			}
			if len(reconcilertest.JobsOf(w)) > 0 {
				t.Fatalf("%s: there is a Job", why)
			}
		}
		a := action.RestoreVolume{Member: "orders-1", Claim: "data-orders-1", ClaimUID: claimUID(w, "orders-1")}
		refused("no recovery", a)
		w.MustDo(begin)
		a.ClusterID = w.Record().Recovering.NewClusterID
		refused("members run", a)
		w.MustDo(action.ResizeSet{SetUID: string(w.Set().UID), From: 3, To: 0, Partition: 3})
		w.Settle()
		other := a
		other.ClaimUID = "another"
		refused("another claim", other)
		other = a
		other.ClusterID = "c3"
		refused("another recovery", other)
		other = a
		other.Member = "orders-2"
		refused("another member", other)
		claim := w.Claims()[1].DeepCopy()
		going := claim.DeepCopy()
		going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: time.Now()}, []string{"test/hold"}
		w.Put(reconcilertest.ClaimsResource(), going)
		refused("a claim that is about to go", a)
		w.Put(reconcilertest.ClaimsResource(), claim)
		w.MustDo(a)
		ends := func(when, oneShot string) {
			t.Helper()
			if err := w.Do(action.EndRecovery{OneShot: oneShot, ClusterID: "c1"}); !errors.Is(err, state.ErrChanged) || len(reconcilertest.JobsOf(w)) != 1 {
				t.Errorf("an end %s: %v, %d Jobs", when, err, len(reconcilertest.JobsOf(w)))
			}
		}
		ends("before the cluster has its new identity", begin.OneShot)
		g := w.Record().Recovering
		w.MustDo(action.AdoptRecovery{From: "c1", ClusterID: g.NewClusterID, Member: g.Member, MemberID: g.NewMemberID})
		if err := w.Do(a); !errors.Is(err, state.ErrChanged) {
			t.Errorf("when the cluster has its new identity: %v", err)
		}
		ends("of another recovery", "c1 from member orders-2")
	})
}
