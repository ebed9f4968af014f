package perturb

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// scenario is something that happens to a cluster, and what comes of it.
type scenario struct {
	name  string
	edits []func(*schema.EtcdCluster)
	// created is true where the cluster is not there at first.
	created bool
	// before is what happens undisturbed, after the cluster has formed.
	before func(w *world)
	// then is what happens while a request is disturbed.
	then func(w *world)
}

func (w *world) commit(edits ...func(*schema.EtcdCluster)) {
	w.Commit(edits...)
	w.tell()
}

func commits(edits ...func(*schema.EtcdCluster)) func(*world) {
	return func(w *world) { w.commit(edits...) }
}

// roll changes options of etcd, which restarts each member.
func roll(c *schema.EtcdCluster) {
	c.Spec.Etcd.Options = map[string]string{"heartbeat-interval": "200", "election-timeout": "2000"}
}

func inState(state schema.State) func(*schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) { c.Spec.State = state }
}

// excused lets a scenario stop members itself.
func excused(then func(*world)) func(*world) {
	return func(w *world) {
		w.judge.excused = true
		then(w)
	}
}

// upTo passes time until something is so.
func (w *world) upTo(what string, so func() bool) {
	w.Helper()
	for range 3600 {
		if so() {
			return
		}
		w.step(time.Second)
	}
	w.judge.add("%s never came", what)
}

// drift lets others change each object that quorate has made.
func drift(w *world) {
	services, budgets := w.API.CoreV1().Services("shop"), w.API.PolicyV1().PodDisruptionBudgets("shop")
	if err := services.Delete(w.Context(), "orders-client", metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	if err := budgets.Delete(w.Context(), "orders", metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	if err := w.API.CoreV1().Secrets("shop").Delete(w.Context(), "orders-client", metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	w.EditSet(func(set *appsv1.StatefulSet) {
		set.Labels = nil
		set.Spec.Template.Spec.Containers[0].Args = append(set.Spec.Template.Spec.Containers[0].Args, "--log-level=debug")
	})
}

// aged lets the certificates come close to their end while quorate does not run.
func aged(w *world) {
	w.Stop()
	time.Sleep(300 * 24 * time.Hour)
	w.start()
}

// scenarios are all that is disturbed. What they have in common is that they end.
func scenarios() []scenario {
	return append([]scenario{
		{name: "create", created: true, then: (*world).start},
		{name: "roll", then: commits(roll)},
		{name: "upgrade", edits: edits(clustertest.SetVersion("3.6.12")), then: commits(clustertest.SetVersion("3.6.16"))},
		{name: "upgrade-minor", edits: edits(clustertest.SetVersion("3.5.35")), then: commits(clustertest.SetVersion("3.6.16"))},
		{name: "downgrade", edits: edits(clustertest.SetVersion("3.6.16")), then: commits(clustertest.SetVersion("3.5.35"))},
		{name: "revert", edits: edits(clustertest.SetVersion("3.6.12")), then: func(w *world) {
			w.Broken = map[string]corev1.ContainerStateWaiting{"3.6.16": {Reason: "ImagePullBackOff", Message: "not found"}}
			w.commit(clustertest.SetVersion("3.6.16"))
			w.upTo("the pod without an image", func() bool {
				return slices.ContainsFunc(w.members(), func(p *corev1.Pod) bool { return p.Annotations[naming.AnnotationVersion] == "3.6.16" })
			})
			w.commit(clustertest.SetVersion("3.6.12"))
		}},
		{name: "scale-up", then: commits(clustertest.SetReplicas(5))},
		{name: "scale-down", edits: edits(clustertest.SetReplicas(5)), then: commits(clustertest.SetReplicas(3))},
		{name: "hibernate-and-wake", then: excused(func(w *world) {
			w.commit(inState(schema.StateHibernated))
			w.rest()
			w.commit(inState(schema.StateRunning))
		})},
		{name: "delete", edits: edits(func(c *schema.EtcdCluster) { c.Spec.Deletion.Backup = schema.BackupSkip }), then: excused(commits(inState(schema.StateDeleted)))},
		{name: "drift", then: drift},
		{name: "renew-certificates", then: aged},
		{name: "backup", then: func(w *world) {
			w.backups = []desired.Backup{clustertest.Once()}
			w.tell()
		}},
	}, dataScenarios()...)
}

func edits(list ...func(*schema.EtcdCluster)) []func(*schema.EtcdCluster) { return list }
