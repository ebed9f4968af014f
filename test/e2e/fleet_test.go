package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/test/lab"
)

// TestFleet upgrades two clusters with one commit: the lower wave first, and the higher one when a
// run of a CronJob has succeeded since, 603. Then a second quorate follows the same files, and leaves alone what is not its own
// until a word in Git hands it over.
func TestFleet(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "fleet")
	canary := w.namespace + "/canary"
	files := func(version, more string) map[string]string {
		return map[string]string{
			"clusters/orders.yaml": w.text(spec{version: version, replicas: 1, more: "    wave: 1\n" + more}),
			"clusters/canary.yaml": w.text(spec{name: "canary", version: version, replicas: 1, more: "    checks: [{name: smoke, cronJob: {name: smoke-test}}]\n"}),
		}
	}
	w.commitFiles("Add a fleet", files("3.6.12", ""))
	w.start()
	for _, key := range []string{canary, w.key()} {
		w.mark = 0
		w.await(key, createLimit, lab.Idle(key, "3.6.12"))
	}

	cron := w.suspendedCronJob("smoke-test")
	w.runOf(cron, "before")

	w.commitFiles("Upgrade the fleet", files("3.6.16", ""))
	from := w.mark
	w.await("603: the higher wave to wait for a run", changeLimit, func(l lab.LogLine) bool {
		return lab.Hold("check smoke: no run of CronJob smoke-test has begun after", "it is suspended", "create job --from=cronjob/smoke-test")(l) && l.Cluster == w.key()
	})
	w.runOf(cron, "since")
	w.awaitDone(changeLimit)
	var order []string
	for _, l := range w.lines(from, lab.Done()) {
		if strings.HasPrefix(l.Action, "start the roll") || strings.HasPrefix(l.Action, "record that 3.6.16") {
			order = append(order, l.Cluster+": "+l.Action)
		}
	}
	want := []string{
		canary + ": start the roll 3.6.12 → 3.6.16", canary + ": record that 3.6.16 is applied",
		w.key() + ": start the roll 3.6.12 → 3.6.16", w.key() + ": record that 3.6.16 is applied",
	}
	if strings.Join(order, "\n") != strings.Join(want, "\n") {
		t.Errorf("the order was\n%s", strings.Join(order, "\n"))
	}

	options, owner := w.options, fmt.Sprintf("%s@%s:clusters#default/1", w.git.URL(), lab.Branch)
	options.Args, options.LogFile = []string{"--instance=other"}, filepath.Join(shared.dir, "fleet-other.log")
	other, err := lab.StartDaemon(t.Context(), options)
	w.must(err)
	t.Cleanup(other.Kill)
	_, _, err = other.WaitFor(t.Context(), 0, holdLimit, lab.Hold("the cluster belongs to "+owner, "#other"))
	w.must(err)

	w.commitFiles("Hand orders over", files("3.6.16", fmt.Sprintf("  takeOver: %q\n", owner)))
	_, _, err = other.WaitFor(t.Context(), 0, holdLimit, lab.Done("take the cluster over from "+owner))
	w.must(err)
	w.await("142: the former owner to let go", holdLimit, func(l lab.LogLine) bool {
		return lab.Hold("belongs to", "#other/2", "#default")(l) && l.Cluster == w.key()
	})
	w.expectVersion(1, "3.6.16")
}

// suspendedCronJob makes a CronJob that runs when it is told to, and succeeds.
func (w *world) suspendedCronJob(name string) *batchv1.CronJob {
	w.Helper()
	pod := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "test", Image: shared.image, Args: []string{"version"}}}}
	cron, err := w.cluster.Client.BatchV1().CronJobs(w.namespace).Create(w.Context(), &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.CronJobSpec{
			Schedule: "@yearly", Suspend: new(true),
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}}},
		},
	}, metav1.CreateOptions{})
	w.must(err)
	return cron
}

// runOf starts a run of a CronJob as kubectl create job --from does.
func (w *world) runOf(cron *batchv1.CronJob, name string) {
	w.Helper()
	owner := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "CronJob", Name: cron.Name, UID: cron.UID, Controller: new(true)}
	_, err := w.cluster.Client.BatchV1().Jobs(w.namespace).Create(w.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: cron.Name + "-" + name, OwnerReferences: []metav1.OwnerReference{owner}}, Spec: cron.Spec.JobTemplate.Spec,
	}, metav1.CreateOptions{})
	w.must(err)
}
