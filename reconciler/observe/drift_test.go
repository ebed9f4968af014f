package observe_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/schema"
)

// TestAdditionWhileARollWaits: what was added to the template goes at once, and
// what was changed in it stays until the roll puts it right.
func TestAdditionWhileARollWaits(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		wanted := len(w.Set().Spec.Template.Spec.Containers[0].Args)
		w.Wish.Spec.Version = "3.6.15"
		w.Wish.Digest = ""
		w.EditSet(func(s *appsv1.StatefulSet) {
			etcd := &s.Spec.Template.Spec.Containers[0]
			etcd.Env = append(etcd.Env, corev1.EnvVar{Name: "ETCD_LOG_LEVEL", Value: "debug"})
			etcd.Args = append(etcd.Args, "--log-level=debug")
		})
		synctest.Wait()
		if o := w.Look().Observed.Objects; o[len(o)-1].Detail == "" || !strings.HasPrefix(o[len(o)-1].Detail, `.spec.template.spec.containers[name="etcd"].env[name="ETCD_LOG_LEVEL"], changed by kubectl-edit`) {
			t.Errorf("the objects are %+v", o)
		}
		w.MustDo(action.ApplyObject{ObjectKind: "StatefulSet", Name: "orders"})
		etcd := w.Set().Spec.Template.Spec.Containers[0]
		if slices.ContainsFunc(etcd.Env, func(e corev1.EnvVar) bool { return e.Name == "ETCD_LOG_LEVEL" }) {
			t.Error("the variable is still there")
		}
		if len(etcd.Args) != wanted+1 || !strings.HasSuffix(etcd.Image, "3.6.16") {
			t.Errorf("the template was changed: image %s, args %q", etcd.Image, etcd.Args)
		}
	})
}

// 241: under Detect what others change or delete is reported and left, and nothing begins
// meanwhile; the cluster is never called ready. It ends when the object is as Git says.
func TestDetectReportsDriftAndLeavesIt(t *testing.T) {
	edits := metav1.UpdateOptions{FieldManager: "kubectl-edit"}
	for kind, test := range map[string]struct {
		edit, back func(w *reconcilertest.World) error
		rule, part string
	}{
		"Service": {
			edit: func(w *reconcilertest.World) error {
				s, _ := w.Contents()["Service orders-client"].(*corev1.Service)
				s.Spec.Type = corev1.ServiceTypeNodePort
				_, err := w.API.CoreV1().Services("shop").Update(w.Context(), s, edits)
				return err
			},
			back: func(w *reconcilertest.World) error {
				s, _ := w.Contents()["Service orders-client"].(*corev1.Service)
				s.Spec.Type = corev1.ServiceTypeClusterIP
				_, err := w.API.CoreV1().Services("shop").Update(w.Context(), s, edits)
				return err
			},
			rule: "fight", part: "Service orders-client is drifted: .spec.type, changed by kubectl-edit; spec.drift.mode is Detect, so it is left as it is",
		},
		"no replicas": {
			edit: func(w *reconcilertest.World) error { w.Scale(0, "kubectl-scale"); return nil },
			rule: "drift", part: "StatefulSet orders is drifted: .spec.replicas, changed by kubectl-scale",
		},
		"no Service": {
			edit: func(w *reconcilertest.World) error {
				return w.API.CoreV1().Services("shop").Delete(w.Context(), "orders-client", metav1.DeleteOptions{})
			},
			rule: "fight", part: "Service orders-client is missing: it was deleted",
		},
		"no StatefulSet": {
			edit: func(w *reconcilertest.World) error {
				return w.API.AppsV1().StatefulSets("shop").Delete(w.Context(), "orders", metav1.DeleteOptions{})
			},
			rule: "drift", part: "StatefulSet orders is missing: it was deleted",
		},
	} {
		t.Run(kind, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				w.Commit(func(c *schema.EtcdCluster) { c.Spec.Drift.Mode = schema.DriftDetect })
				w.R.SetDesired([]desired.Cluster{w.Wish})
				w.UntilIdle()
				if err := test.edit(w); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				w.DrainEvents()
				w.API.ClearActions()
				for range 3 {
					w.MustPass()
				}
				if writes := w.API.Writes(); len(writes) > 0 {
					t.Errorf("writes %q", writes)
				}
				w.WantHold(decision.Refused, test.rule, test.part)
				w.WantPhase(schema.KindCluster, "orders", schema.PhaseStalled, "Refused")
				if s := w.Status(schema.KindCluster, "orders").Status.Cluster.Drift; len(s) != 1 || s[0].Correction != "never: spec.drift.mode is Detect" {
					t.Errorf("the status is %+v", s)
				}
				if told := slices.DeleteFunc(w.DrainEvents(), func(e string) bool { return !strings.Contains(e, test.part) }); len(told) != 1 {
					t.Errorf("Events %q", told)
				}
				if test.back != nil {
					if err := test.back(w); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					w.UntilIdle()
				}
				w.Commit(func(c *schema.EtcdCluster) { c.Spec.Drift.Mode = schema.DriftCorrect })
				w.UntilIdle()
			})
		})
	}
}

// 261: a field that Git lets others set and wants to be told of is told in status and
// metric, and nothing is done about it: the cluster is what Git says, and what comes next is
// done.
func TestReportedFieldsHoldNothing(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.UntilIdle()
		s, _ := w.Contents()["Service orders-client"].(*corev1.Service)
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		if _, err := w.API.CoreV1().Services("shop").Update(w.Context(), s, metav1.UpdateOptions{FieldManager: "lb-controller"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.API.ClearActions()
		for range 3 {
			w.MustPass()
		}
		if writes := w.API.Writes(); len(writes) > 0 {
			t.Errorf("writes %q", writes)
		}
		w.WantPhase(schema.KindCluster, "orders", schema.PhaseReady, "Idle")
		list := w.Status(schema.KindCluster, "orders").Status.Cluster.Drift
		if len(list) != 1 || list[0].Manager != "lb-controller" || list[0].Correction != "never: spec.drift.ignore reports it only" || list[0].Changes[0].Live != "ClientIP" {
			t.Errorf("the status is %+v", list)
		}
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{"quorate_cluster_drifted_objects{etcd_cluster=orders}": 1})
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.UntilIdle()
		if s, _ := w.Contents()["Service orders-client"].(*corev1.Service); s.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
			t.Errorf("it was put back: %+v", s.Spec)
		}
	}, func(c *schema.EtcdCluster) {
		c.Spec.Drift.Ignore = []schema.IgnoredDrift{{Kind: "Service", Path: "/spec/sessionAffinity", Reason: "the load balancer's controller sets it", Report: true}}
	}, clustertest.SetVersion("3.6.12"))
}

// 241: under Detect a cluster begins, grows and changes as Git says; what is not there
// while no member runs is made.
func TestDetectAppliesWhatGitChanges(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(func(c *schema.EtcdCluster) {
			c.Metadata.Labels = map[string]string{"team": "shop"}
			c.Spec.Network.IPFamilyPolicy = corev1.IPFamilyPolicyPreferDualStack
		})
		w.UntilIdle()
		if s, _ := w.Contents()["Service orders-client"].(*corev1.Service); s.Labels["team"] != "shop" || s.Spec.IPFamilyPolicy == nil {
			t.Errorf("%+v", s)
		}
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.State = schema.StateDeleted })
		w.UntilIdle()
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.State = schema.StateRunning })
		w.UntilIdle()
	}, func(c *schema.EtcdCluster) { c.Spec.Drift.Mode = schema.DriftDetect })
}
