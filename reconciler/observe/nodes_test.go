package observe_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
)

// podSeen is orders-1 as the planner sees it.
func podSeen(w *reconcilertest.World) state.Pod {
	w.Helper()
	for _, p := range w.Look().Observed.Pods {
		if p.Name == "orders-1" {
			return p
		}
	}
	w.Fatal("no pod orders-1")
	return state.Pod{}
}

func putNode(w *reconcilertest.World, name, host string, ready corev1.ConditionStatus, since time.Time) {
	w.Helper()
	w.Put(corev1.SchemeGroupVersion.WithResource("nodes"), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: host}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			// Of each other condition False is the good news.
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
			{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(since)},
		}},
	})
}

// taint says of a node that it is off.
func taint(w *reconcilertest.World, name string) {
	w.Helper()
	nodes := w.R.Observer.Kube.CoreV1().Nodes()
	node, err := nodes.Get(w.Context(), name, metav1.GetOptions{})
	if err == nil {
		node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}
		_, err = nodes.Update(w.Context(), node, metav1.UpdateOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
}

func TestNodeThatHasTheVolume(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		since, earlier := time.Now().Add(-time.Hour).Truncate(time.Second), time.Now().Add(-2*time.Hour).Truncate(time.Second)
		stopped := false
		check := func(when string, gone bool, want time.Time) {
			t.Helper()
			if p := podSeen(w); p.NodeGone != gone || p.NodeStopped != stopped || !p.NodeGoneSince.Equal(want) || p.Damage != "" || !p.DamageSince.IsZero() {
				t.Errorf("%s: %+v", when, p)
			}
		}
		reconcilertest.Ill(w, since, func(p *corev1.Pod) { p.Spec.NodeName = "n1" })
		check("a claim without a volume", false, time.Time{})
		reconcilertest.Tie(w, corev1.ClaimBound)
		check("a volume that can go elsewhere", false, time.Time{})
		if err := w.API.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("persistentvolumes"), "", "pv-1"); err != nil {
			t.Fatal(err)
		}
		check("a volume that does not exist", false, time.Time{})
		reconcilertest.Tie(w, corev1.ClaimBound, "host-1", "host-2")
		check("a volume that one other node can have", false, time.Time{})
		reconcilertest.Tie(w, corev1.ClaimBound, "host-1")
		stopped = true
		check("no such node", true, since)
		stopped = false
		if err := w.API.Tracker().Delete(reconcilertest.ClaimsResource(), "shop", "data-orders-1"); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		check("no claim", false, time.Time{})
		reconcilertest.Tie(w, corev1.ClaimBound, "host-1")
		putNode(w, "another-name", "host-1", corev1.ConditionTrue, earlier)
		check("a node of another name that is well", false, time.Time{})
		putNode(w, "another-name", "host-1", corev1.ConditionUnknown, earlier)
		check("a node that does not answer", true, earlier)
		taint(w, "another-name")
		stopped = true
		check("one that a person calls off", true, earlier)
		stopped = false
		w.API.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("nodes"), "", errors.New("no"))
		})
		check("nodes that may not be read", false, time.Time{})
		w.API.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("the API server is away")
		})
		_, err := w.R.Observer.Observe(w.Context(), w.Wish)
		backuptest.WantError(t, err, "get the node of orders-1", "away")
		w.API.PrependReactor("get", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("the volume is not told")
		})
		_, err = w.R.Observer.Observe(w.Context(), w.Wish)
		backuptest.WantError(t, err, "get the node of orders-1", "the volume is not told")
	})
}

// 347: a pod that should have stopped is told with its node where that does not report, and
// every object that is being deleted with what keeps it.
func TestWhatIsBeingDeletedIsToldWithWhatKeepsIt(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		asked := time.Now().Add(-time.Hour).Truncate(time.Second)
		due := func(in time.Duration) {
			reconcilertest.Ill(w, asked, func(p *corev1.Pod) {
				p.Spec.NodeName, p.Finalizers = "n1", []string{"example.com/drain"}
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(asked.Add(in))), new(int64(in.Seconds()))
			})
		}
		check := func(when, lost string) {
			t.Helper()
			if p := podSeen(w); p.LostNode != lost || !p.GoingSince.Equal(asked) || p.Finalizers != "example.com/drain" {
				t.Errorf("%s: %+v", when, p)
			}
		}
		due(2 * time.Hour)
		check("within its time of grace", "")
		due(time.Minute)
		check("no such node", "n1")
		putNode(w, "n1", "host-1", corev1.ConditionTrue, asked)
		check("a node that reports", "")
		putNode(w, "n1", "host-1", corev1.ConditionUnknown, asked)
		check("a node that does not", "n1")
		w.API.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("nodes"), "", errors.New("no"))
		})
		check("nodes that may not be read", "")
	})
}

// A volume is tied to a node only where it says so without an alternative: one that
// is not may come up elsewhere, and its data is not lost.
func TestHostThatAloneHasTheVolume(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		term := func(key string, operator corev1.NodeSelectorOperator, hosts ...string) corev1.NodeSelectorTerm {
			return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: hosts}}}
		}
		here := term(corev1.LabelHostname, corev1.NodeSelectorOpIn, "host-1")
		for name, c := range map[string]struct {
			terms []corev1.NodeSelectorTerm
			want  string
		}{
			"one host":              {[]corev1.NodeSelectorTerm{here}, "host-1"},
			"no affinity":           {nil, ""},
			"none that is required": {[]corev1.NodeSelectorTerm{}, ""},
			"two terms":             {[]corev1.NodeSelectorTerm{here, term(corev1.LabelHostname, corev1.NodeSelectorOpIn, "host-2")}, ""},
			"two hosts":             {[]corev1.NodeSelectorTerm{term(corev1.LabelHostname, corev1.NodeSelectorOpIn, "host-1", "host-2")}, ""},
			"all hosts but one":     {[]corev1.NodeSelectorTerm{term(corev1.LabelHostname, corev1.NodeSelectorOpNotIn, "host-1")}, ""},
			"a zone":                {[]corev1.NodeSelectorTerm{term(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "host-1")}, ""},
		} {
			volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}}
			if c.terms != nil {
				volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{}
			}
			if len(c.terms) > 0 {
				volume.Spec.NodeAffinity.Required = &corev1.NodeSelector{NodeSelectorTerms: c.terms}
			}
			w.Put(corev1.SchemeGroupVersion.WithResource("persistentvolumes"), volume)
			claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}}
			if got, err := w.R.Observer.HostOfVolume(w.Context(), claim); err != nil || got != c.want {
				t.Errorf("%s: %q, want %q: %v", name, got, c.want, err)
			}
		}
	})
}

func TestVolumeThatIsLost(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		since := time.Now().Add(-time.Hour).Truncate(time.Second)
		reconcilertest.Ill(w, since, func(*corev1.Pod) {})
		reconcilertest.Tie(w, corev1.ClaimLost)
		if p := podSeen(w); p.Damage != state.DamageLost || !p.DamageSince.Equal(since) {
			t.Errorf("%+v", p)
		}
	})
}

// A damaged pod is seen the same way by the second look before an action, and a
// pod that is ready has nothing that could be wrong.
func TestDamageIsSeenTwice(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		since := time.Now().Add(-time.Hour).Truncate(time.Second)
		refusal := []corev1.ContainerStatus{clustertest.Ended(naming.ContainerGuard, 3, "Error", "empty")}
		reconcilertest.Ill(w, since, func(p *corev1.Pod) { p.Status.InitContainerStatuses = refusal })
		if p := podSeen(w); p.Damage != state.DamageEmpty || !p.DamageSince.Equal(since) {
			t.Errorf("%+v", p)
		}
		v, err := w.R.Observer.Refresh(w.Context(), w.Look(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(v.Observed.Pods, func(p state.Pod) bool { return p.Damage == state.DamageEmpty }); i < 0 || v.Observed.Pods[i].Name != "orders-1" {
			t.Errorf("past the caches: %+v", v.Observed.Pods)
		}
		pod := w.Pod("orders-1")
		pod.Status.Conditions[0].Status = corev1.ConditionTrue
		w.Put(reconcilertest.PodsResource(), pod)
		w.Settle()
		w.API.ClearActions()
		if p := podSeen(w); p.Damage != "" || p.NodeGone {
			t.Errorf("a pod that is ready: %+v", p)
		}
		if asked := strings.Join(w.API.Requests(), " "); strings.Contains(asked, "nodes") {
			t.Errorf("asked for %s", asked)
		}
	})
}

// 272: ready is the kubelet's word, and is not counted where its node does not report. Nodes
// are read only while no member answers.
func TestAReadyPodOnASilentNode(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		p := w.Pod("orders-1").DeepCopy()
		p.Spec.NodeName = "n1"
		w.Put(corev1.SchemeGroupVersion.WithResource("pods"), p)
		w.Settle()
		putNode(w, "n1", "host-2", corev1.ConditionUnknown, time.Now())
		if podSeen(w).NodeSilent {
			t.Error("its node was read although the members answer")
		}
		w.Etcd.Change = func(r *state.Round) { r.Problem = "orders-0: status: context deadline exceeded" }
		if p := podSeen(w); !p.NodeSilent || p.SilentNode != "n1" {
			t.Error("the word of a silent node counts")
		}
		taint(w, "n1")
		if p := podSeen(w); !p.NodeSilent || p.SilentNode != "" {
			t.Error("what is on a node that is off may serve")
		}
		putNode(w, "n1", "host-1", corev1.ConditionTrue, time.Now())
		if podSeen(w).NodeSilent {
			t.Error("a node that reports is called silent")
		}
		p = w.Pod("orders-1").DeepCopy()
		p.Spec.NodeName = "n2"
		w.Put(corev1.SchemeGroupVersion.WithResource("pods"), p)
		w.Settle()
		w.Settle()
		if p := podSeen(w); !p.NodeSilent || p.SilentNode != "" {
			t.Error("the word of a node that does not exist counts, or what was on it may serve")
		}
		w.API.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("nodes"), "", errors.New("no"))
		})
		if podSeen(w).NodeSilent {
			t.Error("what quorate may not read is called silent")
		}
	})
}

// 295: what the status of a pod says that is not ready counts only while its node reports,
// or where it is on none; what quorate may not read does not.
func TestTheWordOfAKubelet(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		check := func(when string, want bool) {
			t.Helper()
			if p := podSeen(w); p.Reported != want || p.DownSince.IsZero() {
				t.Errorf("%s: %+v", when, p)
			}
		}
		reconcilertest.Ill(w, time.Now(), func(p *corev1.Pod) { p.Spec.NodeName = "n1" })
		putNode(w, "n1", "host-1", corev1.ConditionTrue, time.Now())
		check("while members answer nothing is read", false)
		w.Etcd.Change = func(r *state.Round) { r.Problem = "no endpoint answers" }
		check("a node that reports", true)
		putNode(w, "n1", "host-1", corev1.ConditionUnknown, time.Now())
		check("a node that does not", false)
		reconcilertest.Ill(w, time.Now(), func(p *corev1.Pod) { p.Spec.NodeName = "" })
		check("no node", true)
		reconcilertest.Ill(w, time.Now(), func(p *corev1.Pod) { p.Spec.NodeName = "n1" })
		w.API.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("nodes"), "", errors.New("no"))
		})
		check("nodes that quorate may not read", false)
	})
}
