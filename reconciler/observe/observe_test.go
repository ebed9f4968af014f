package observe_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
)

func TestWhatTheSetIsAtRest(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		v := w.Look()
		s := v.Observed.Set
		if s.Replicas != 3 || s.Partition != 3 || !s.Settled || len(s.Immutable) > 0 ||
			s.Template != v.Desired.Template || s.CurrentTemplate != v.Desired.Template || s.CurrentVersion != "3.6.16" || s.UID != string(w.Set().UID) {
			t.Errorf("the set is %+v, wanted template %s", s, v.Desired.Template)
		}
		if len(v.Observed.Pods) != 3 || len(v.Observed.Volumes) != 3 || len(v.Endpoints) != 3 {
			t.Errorf("%d pods, %d volumes, %d endpoints", len(v.Observed.Pods), len(v.Observed.Volumes), len(v.Endpoints))
		}
		for _, o := range v.Observed.Objects {
			if o.State != state.ObjectInSync {
				t.Errorf("%s %s is %s: %s", o.Kind, o.Name, o.State, o.Detail)
			}
		}
		if v.Expiry.IsZero() {
			t.Error("no certificate expires")
		}
	})
}

func TestControllerThatHasNotSeenTheChangeIsUnsettled(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		set := w.Set()
		set.Generation++
		w.Put(reconcilertest.SetsResource(), set)
		synctest.Wait()
		if w.Look().Observed.Set.Settled {
			t.Error("settled, although the controller is a generation behind")
		}
	})
}

// A member is dialled by its pod's address, under the name in its certificate,
// and dialled again when either changes.
func TestEndpointsFollowPodsAndCredentials(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		before := w.Look().Endpoints[1]
		if before.Member != "orders-1" || before.Host != "orders-1.orders-peers.shop.svc" || before.Address != "10.0.0.1:2379" {
			t.Errorf("endpoint %+v", before)
		}
		config, err := before.TLS()
		if err != nil || config.ServerName != before.Host {
			t.Errorf("TLS %v", err)
		}
		w.DeletePod("orders-1")
		w.Settle()
		after := w.Look().Endpoints[1]
		if after.Incarnation == before.Incarnation {
			t.Error("the successor of a pod is dialled over its connection")
		}
		secret, _ := w.Contents()["Secret orders-client"].(*corev1.Secret)
		w.Put(corev1.SchemeGroupVersion.WithResource("secrets"), secret)
		synctest.Wait()
		if w.Look().Endpoints[1].Incarnation == after.Incarnation {
			t.Error("new credentials are not used")
		}
	})
}

func TestPodsThatCannotBeDialled(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		terminating, addressless := w.Pod("orders-1"), w.Pod("orders-2")
		terminating.DeletionTimestamp, terminating.Finalizers = &metav1.Time{Time: time.Now()}, []string{"test/hold"}
		addressless.Status.PodIP = ""
		w.Put(reconcilertest.PodsResource(), terminating)
		w.Put(reconcilertest.PodsResource(), addressless)
		synctest.Wait()
		v := w.Look()
		if len(v.Endpoints) != 1 || v.Endpoints[0].Member != "orders-0" {
			t.Errorf("endpoints %+v", v.Endpoints)
		}
		if _, err := v.Target("orders-2", "a2"); err == nil {
			t.Error("a member without an address can be asked")
		}
	})
}

func TestClearTextNeedsNoCertificates(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		v := w.Look()
		if len(v.Endpoints) != 3 || v.Endpoints[0].TLS != nil || !v.Expiry.IsZero() {
			t.Errorf("endpoints %+v", v.Endpoints)
		}
	}, clustertest.DisableTLS)
}

func TestMembersAreNotDialledWithoutCredentials(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		if err := w.API.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), "shop", "orders-client"); err != nil {
			w.Fatal(err)
		}
		synctest.Wait()
		v := w.Look()
		if len(v.Endpoints) > 0 || !slices.Contains(v.Observed.Certificates.Missing, "orders-client") {
			t.Errorf("endpoints %+v, certificates %+v", v.Endpoints, v.Observed.Certificates)
		}
	})
}

// I7: what somebody else made is in the way, and is left alone.
func TestForeignObjectsAreLeftAlone(t *testing.T) {
	name := func(n string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: n, Namespace: "shop", Labels: labels}
	}
	core := corev1.SchemeGroupVersion
	for kind, foreign := range map[string]struct {
		resource apischema.GroupVersionResource
		object   runtime.Object
	}{
		"StatefulSet orders":                      {reconcilertest.SetsResource(), &appsv1.StatefulSet{ObjectMeta: name("orders", nil)}},
		"ConfigMap orders-record":                 {core.WithResource("configmaps"), &corev1.ConfigMap{ObjectMeta: name("orders-record", nil)}},
		"Service orders-client":                   {core.WithResource("services"), &corev1.Service{ObjectMeta: name("orders-client", nil)}},
		"Service orders-peers":                    {core.WithResource("services"), &corev1.Service{ObjectMeta: name("orders-peers", map[string]string{naming.LabelCluster: "orders"})}},
		"PersistentVolumeClaim data-orders-2":     {core.WithResource("persistentvolumeclaims"), &corev1.PersistentVolumeClaim{ObjectMeta: name("data-orders-2", nil)}},
		"PodDisruptionBudget orders":              {policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), &policyv1.PodDisruptionBudget{ObjectMeta: name("orders", map[string]string{"app.kubernetes.io/managed-by": "quorate"})}},
		"Service orders-client of another orders": {core.WithResource("services"), &corev1.Service{ObjectMeta: name("orders-client", map[string]string{"app.kubernetes.io/managed-by": "quorate", naming.LabelCluster: "other"})}},
	} {
		t.Run(kind, func(t *testing.T) {
			reconcilertest.Run(t, func(w *reconcilertest.World) {
				w.Put(foreign.resource, foreign.object)
				p := w.Until(func(p decision.Plan) bool { return p.Hold != nil && p.Hold.Kind == decision.Refused })
				if want, _, _ := strings.Cut(kind, " of "); !strings.Contains(p.Hold.Message, want) || len(w.API.Writes()) > 0 {
					t.Errorf("the hold says %q", p.Hold.Message)
				}
				seen := w.Look().Observed.Objects
				if slices.ContainsFunc(seen, func(o state.Object) bool { return o.State != state.ObjectForeign }) {
					t.Errorf("besides, these are said to be missing or to differ: %+v", seen)
				}
			})
		})
	}
}

// A volume that an earlier cluster of the name left may be somebody's only copy.
func TestVolumesLeftBehindAreNotTaken(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.Put(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "data-orders-0", Namespace: "shop", Labels: naming.OwnLabels(w.Wish.EtcdCluster)},
		})
		synctest.Wait()
		p := w.Until(func(p decision.Plan) bool { return p.Hold != nil && p.Hold.Kind == decision.Refused })
		if !strings.Contains(p.Hold.Message, "only copy") || len(w.API.Writes()) > 0 {
			t.Errorf("the hold says %q", p.Hold.Message)
		}
	})
}

// What kubectl edit changes is named with its manager, and brought back.
func TestEditsByHandAreDrift(t *testing.T) {
	edits := metav1.UpdateOptions{FieldManager: "kubectl-edit"}
	for kind, test := range map[string]struct {
		edit  func(w *reconcilertest.World) error
		field string
	}{
		"Service orders-client": {func(w *reconcilertest.World) error {
			s, _ := w.Contents()["Service orders-client"].(*corev1.Service)
			s.Spec.Type = corev1.ServiceTypeNodePort
			_, err := w.API.CoreV1().Services("shop").Update(w.Context(), s, edits)
			return err
		}, "spec.type"},
		"PodDisruptionBudget orders": {func(w *reconcilertest.World) error {
			b, _ := w.Contents()["PodDisruptionBudget orders"].(*policyv1.PodDisruptionBudget)
			b.Spec.MinAvailable.IntVal = 0
			_, err := w.API.PolicyV1().PodDisruptionBudgets("shop").Update(w.Context(), b, edits)
			return err
		}, "spec.minAvailable"},
		"StatefulSet orders": {func(w *reconcilertest.World) error {
			set := w.Set()
			set.Spec.Template.Spec.Containers[0].Image = "evil:latest"
			_, err := w.API.AppsV1().StatefulSets("shop").Update(w.Context(), set, edits)
			return err
		}, "spec.template"},
	} {
		t.Run(kind, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				if err := test.edit(w); err != nil {
					w.Fatal(err)
				}
				synctest.Wait()
				drifted := slices.DeleteFunc(w.Look().Observed.Objects, func(o state.Object) bool { return o.State != state.ObjectDrifted })
				if len(drifted) != 1 || drifted[0].Kind+" "+drifted[0].Name != kind ||
					!strings.Contains(drifted[0].Detail, test.field) || !strings.Contains(drifted[0].Detail, "by kubectl-edit") || drifted[0].ChangedAt.IsZero() {
					t.Errorf("drifted: %+v", drifted)
				}
				w.MustPass()
				if steps := w.Lines("step started", "action"); !slices.Equal(steps, []string{"apply " + kind}) {
					t.Errorf("steps %q", steps)
				}
				w.UntilIdle()
			})
		})
	}
}

func TestMissingObjectsComeBack(t *testing.T) {
	for kind, resource := range map[string]apischema.GroupVersionResource{
		"Service orders-client":      corev1.SchemeGroupVersion.WithResource("services"),
		"PodDisruptionBudget orders": policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"),
	} {
		reconcilertest.Formed(t, func(w *reconcilertest.World) {
			_, name, _ := strings.Cut(kind, " ")
			if err := w.API.Tracker().Delete(resource, "shop", name); err != nil {
				w.Fatal(err)
			}
			synctest.Wait()
			w.MustPass()
			if w.Contents()[kind] == nil {
				t.Errorf("%s is still gone", kind)
			}
		})
	}
}

// A newer quorate restarts nothing: the guard's image stays until another cause
// rolls the pods.
func TestNewerGuardWaitsForAnotherCause(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Reconfigure(func(o *reconciler.Options) { o.Render.GuardImage = "ghcr.io/quorate/quorate:v0.2.0" })
		if p, err := w.R.Plan(w.Context(), w.Wish); err != nil || !p.Idle() {
			t.Errorf("the plan of a newer quorate is %s, %v", p.Text(), err)
		}
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.UntilIdle()
		if image := observe.GuardImage(w.Set()); image != "ghcr.io/quorate/quorate:v0.2.0" {
			t.Errorf("after a roll the guard is %s", image)
		}
	}, clustertest.SetVersion("3.6.12"))
}

// The startup probe of earlier builds stays like the guard's image, and so does each pod.
func TestStartupProbeStaysUntilThePodsChangeAnyway(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		with := manifests.Options{GuardImage: observe.GuardImage(w.Set()), ClusterDomain: "cluster.local", StartupProbe: true, Partition: 3}
		earlier, err := manifests.Render(w.Wish.EtcdCluster, with)
		if err != nil {
			w.Fatal(err)
		}
		if _, err := w.API.AppsV1().StatefulSets("shop").Apply(w.Context(), earlier.StatefulSet, kube.ApplyOptions()); err != nil {
			w.Fatal(err)
		}
		w.Settle()
		uids := w.PodUIDs()
		w.API.ClearActions()
		w.UntilIdle()
		if !manifests.HasStartupProbe(w.Set().Spec.Template) || len(w.API.Writes()) > 0 || w.PodUIDs() != uids {
			t.Errorf("the StatefulSet of an earlier build is not left as it is: %v", w.API.Writes())
		}
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.UntilIdle()
		if manifests.HasStartupProbe(w.Set().Spec.Template) {
			t.Error("after a roll the startup probe is still there")
		}
	}, clustertest.SetVersion("3.6.12"))
}

// A startup probe that another program adds is none that a roll waits for.
func TestStartupProbeOfAnotherWriterIsTakenOut(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.EditSet(func(set *appsv1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].StartupProbe = &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(naming.ClientPort)}}, FailureThreshold: 3,
			}
		})
		synctest.Wait()
		w.UntilIdle()
		if w.Set().Spec.Template.Spec.Containers[0].StartupProbe != nil {
			t.Error("the other writer's startup probe is still there")
		}
	})
}

func TestDamagedRecordIsAHold(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		reconcilertest.Damage(w)
		synctest.Wait()
		p := w.Until(func(p decision.Plan) bool { return p.Hold != nil })
		if p.Hold.Kind != decision.Refused || !strings.Contains(p.Hold.Message, "record") || len(w.API.Writes()) > 0 {
			t.Errorf("the hold is %+v", p.Hold)
		}
	})
}

func TestExpiredCertificateHolds(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Reconfigure(func(o *reconciler.Options) { o.Now = func() time.Time { return time.Now().AddDate(20, 0, 0) } })
		p := w.Until(func(p decision.Plan) bool { return p.Hold != nil })
		if p.Hold.Kind != decision.Unhealthy || !strings.Contains(p.Hold.Message, "expired on") || len(w.API.Writes()) > 0 {
			t.Errorf("the hold is %+v", p.Hold)
		}
	})
}

// 360: a pod of another revision than the newest is told by its label, where the hash is the
// same; one of another hash is another matter, and before the controller has seen the last
// change nothing is known.
func TestPodOfAnotherRevision(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		stale := func() (names []string) {
			for _, p := range w.Look().Observed.Pods {
				if p.Stale {
					names = append(names, p.Name)
				}
			}
			return names
		}
		if got := stale(); got != nil {
			t.Errorf("at rest %v are stale", got)
		}
		set := w.Set()
		set.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
		set.Generation++
		w.Put(reconcilertest.SetsResource(), set)
		synctest.Wait()
		if got := stale(); got != nil {
			t.Errorf("before the controller has seen the change %v are stale", got)
		}
		w.Settle()
		if got := stale(); len(got) != 3 {
			t.Errorf("of another revision %v are stale", got)
		}
		set = w.Set()
		set.Spec.Template.Annotations[naming.AnnotationTemplateHash] = "x"
		w.Put(reconcilertest.SetsResource(), set)
		w.Settle()
		if got := stale(); got != nil {
			t.Errorf("of another hash %v are stale", got)
		}
	})
}
