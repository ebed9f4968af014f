package perturb

import (
	"bytes"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/scheduler"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// volume is the UID of the claim that a member's data is on, "" for none.
func (w *world) volume(member string) string {
	o, err := w.API.Tracker().Get(reconcilertest.ClaimsResource(), "shop", "data-"+member)
	if err != nil {
		return ""
	}
	claim, _ := o.(*corev1.PersistentVolumeClaim)
	return string(claim.UID)
}

// wipe takes the data of members, whose pods start again.
func (w *world) wipe(members ...string) {
	w.wiped = map[string]string{}
	for _, name := range members {
		w.wiped[w.volume(name)] = w.Etcd.MemberID(name)
		w.judge.emptied(name)
		w.DeletePod(name)
	}
}

// refusal is the code with which the guard of a member refuses a volume that was wiped, 0
// for none: it lacks the member's data, or that of a member that is none any more.
func (w *world) refusal(member string) int32 {
	members, _ := w.Etcd.Listed()
	switch {
	case w.wiped[w.volume(member)] != w.Etcd.MemberID(member):
		return 0
	case !slices.Contains(members, member):
		return guard.ExitNotAMember
	}
	return guard.ExitEmpty
}

// guards has the guard of a pod refuse its volume, or let go one that it has refused. It
// reports whether it refuses, and whether that is news.
func (w *world) guards(pod *corev1.Pod) (refuses, news bool) {
	code, said := w.refusal(pod.Name), int32(0)
	for _, s := range pod.Status.InitContainerStatuses {
		said = s.LastTerminationState.Terminated.ExitCode
	}
	if code == said {
		return code != 0, false
	}
	pod = reconcilertest.ReadyPod(pod, false)
	pod.Status.Conditions[0].LastTransitionTime = metav1.Now()
	etcd := &pod.Status.ContainerStatuses[0].State
	*etcd, pod.Status.InitContainerStatuses = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}, nil
	if code != 0 {
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{clustertest.Ended(naming.ContainerGuard, code, "Error", "the volume is empty")}
		*etcd = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	}
	w.Put(reconcilertest.PodsResource(), pod)
	return code != 0, true
}

// heard lets the leader say of members that are down that it does not hear them.
func heard(r *state.Round) {
	r.Listened = true
	for i := range r.Members {
		if r.Members[i].Problem != "" {
			r.Members[i].Peers = state.PeersApart
		}
	}
}

// loseVolume lets a member come back without its data.
func loseVolume(w *world) {
	w.Etcd.Change = heard
	w.ProtectClaims()
	w.wipe("orders-1")
}

func repairSoon(c *schema.EtcdCluster) { c.Spec.Repair.After = &metav1.Duration{Duration: time.Minute} }

// growVolumes grows the volumes, which takes their provisioner a moment.
func growVolumes(w *world) {
	w.each = w.Provision
	w.commit(func(c *schema.EtcdCluster) { c.Spec.Storage.Size = resource.MustParse("16Gi") })
}

// runJobs lets the Jobs that quorate starts do their work.
func (w *world) runJobs() {
	for _, job := range reconcilertest.JobsOf(w.World) {
		if len(job.Status.Conditions) > 0 {
			continue
		}
		if job.Spec.Template.Spec.Containers[0].Args[0] != "restore-volume" {
			w.JobTakes(job)
			continue
		}
		w.JobEndsWith(job, batchv1.JobComplete)
	}
}

// restoreBackup makes the cluster of a backup.
func restoreBackup(w *world) {
	url := "file://" + w.Backups + "/1.db?root=" + w.Backups
	m := backup.Manifest{ClusterID: "c0", EtcdVersion: "3.6.16", Revision: 7}
	if _, err := (backup.Store{}).Save(w.Context(), url, bytes.NewReader(w.Etcd.Database), m); err != nil {
		w.Fatal(err)
	}
	w.AsksRestore(url)
	w.each = w.refounds("orders-0")
	w.start()
}

// recoverMember makes a cluster that has lost two of three volumes one of the third.
func recoverMember(w *world) {
	w.Etcd.Change = quorumless
	w.ProtectClaims()
	w.wipe("orders-0", "orders-2")
	w.upTo("the loss of the quorum", func() bool { return w.holds("recovery") })
	w.each = w.refounds("orders-1")
	w.commit(func(c *schema.EtcdCluster) {
		c.Spec.Recovery = schema.RecoverySpec{ClusterID: "c1", Member: "orders-1"}
	})
}

// holds reports whether a rule holds the cluster.
func (w *world) holds(rule string) bool {
	defer w.line.arm(w.line.arm(false))
	p, err := w.R.Plan(w.Context(), w.Wish)
	return err == nil && p.Hold != nil && p.Hold.Rule == rule
}

// quorumless is what members answer when most are down: the others follow no leader.
func quorumless(r *state.Round) {
	heard(r)
	voters, up := 0, 0
	for _, m := range r.Members {
		if m.Learner {
			continue
		}
		voters++
		if m.Version != "" {
			up++
		}
	}
	if 2*up > voters {
		return
	}
	r.Problem, r.ClusterID, r.Listened = "linearizable read: context deadline exceeded", "", false
	for i := range r.Members {
		m := &r.Members[i]
		if m.Version == "" { // nor do they say who it is that is silent
			*m = state.Member{Name: m.Name, Problem: m.Problem}
			continue
		}
		m.Leader, m.Problem = "", "linearizable read: context deadline exceeded"
	}
}

// refounds runs Jobs, and lets the cluster begin on the volume of a member that one of them
// has restored.
func (w *world) refounds(member string) func() {
	return func() {
		w.runJobs()
		g := w.recovering()
		if g == nil || w.Etcd.MemberID(member) == g.NewMemberID || !slices.ContainsFunc(reconcilertest.JobsOf(w.World), ended) {
			return
		}
		w.judge.emptied(member)
		w.Etcd.Found(g.NewClusterID, member, g.NewMemberID, 7+state.RevisionBump)
	}
}

func ended(job batchv1.Job) bool { return len(job.Status.Conditions) > 0 }

// recovering is the restore under way, nil for none.
func (w *world) recovering() *record.Recovering {
	if _, err := w.API.Tracker().Get(corev1.SchemeGroupVersion.WithResource("configmaps"), "shop", "orders-record"); err != nil {
		return nil
	}
	return w.Record().Recovering
}

// byJobs has backups taken by Jobs.
func byJobs(w *world) {
	w.Stop()
	w.R.Options.BackupRunner = scheduler.InJob
	w.start()
}

func toVolume(c *schema.EtcdCluster) {
	c.Spec.Backup.Destination.PodAccess = schema.PodAccess{ClaimName: "backups"}
}

// backupByJob takes a backup in a Job.
func backupByJob(w *world) {
	w.each = w.runJobs
	w.backups = []desired.Backup{clustertest.Once()}
	w.tell()
}

// nightly takes a backup when its time comes.
func nightly(w *world) {
	w.backups = []desired.Backup{clustertest.Nightly(func(s *schema.BackupScheduleSpec) { s.Schedule = "30 0 * * *" })}
	w.tell()
	w.upTo("the backup of the night", func() bool { return len(w.Manifests()) > 0 })
}

// dataScenarios are about volumes and backups.
func dataScenarios() []scenario {
	return []scenario{
		{name: "repair", edits: edits(repairSoon), then: loseVolume},
		{name: "grow-volumes", before: func(w *world) { w.Disks(true) }, then: growVolumes},
		{name: "backup-by-job", edits: edits(toVolume), before: byJobs, then: backupByJob},
		{name: "restore", created: true, then: restoreBackup},
		{name: "recover", then: excused(recoverMember)},
		{name: "schedule", then: nightly},
		{name: "delete-with-backup", then: excused(commits(inState(schema.StateDeleted)))},
	}
}
