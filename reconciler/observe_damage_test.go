package reconciler

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
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/state"
)

// ended is a container that ended and waits for its next start.
func ended(name string, code int32, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}},
	}
}

func TestDamageOfAPod(t *testing.T) {
	passed := corev1.ContainerStatus{Name: naming.ContainerGuard, Ready: true, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
	etcd := func(code int32, reason, message string) corev1.PodStatus {
		return corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{passed}, ContainerStatuses: []corev1.ContainerStatus{ended(naming.ContainerEtcd, code, reason, message)}}
	}
	refused := func(code int32) corev1.PodStatus {
		return corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{ended(naming.ContainerGuard, code, "Error", "no")}}
	}
	const crc = `{"level":"fatal","msg":"failed to read WAL, cannot be repaired","error":"walpb: crc mismatch: expected: 1 computed: 2"}`
	back := etcd(2, "Error", crc)
	back.ContainerStatuses[0].Ready = true
	again := etcd(2, "Error", crc)
	again.InitContainerStatuses = refused(6).InitContainerStatuses
	for name, test := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"nothing yet":                     {corev1.PodStatus{}, ""},
		"the guard finds nothing":         {refused(3), state.DamageEmpty},
		"the guard finds somebody else's": {refused(4), state.DamageForeign},
		"the guard finds an earlier ID":   {refused(7), state.DamageOutdated},
		"the guard cannot read it":        {refused(5), state.DamageCorrupt},
		"the guard cannot decide":         {refused(1), ""},
		"the guard knows no such member":  {refused(6), ""},
		"the guard was killed":            {refused(137), ""},
		"the guard looks again":           {again, ""},
		"the guard looks":                 {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: naming.ContainerGuard}}}, ""},
		"another container ended like it": {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{ended("sidecar", 3, "Error", "no")}}, ""},
		"another container's log":         {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended("sidecar", 1, "Error", crc)}}, ""},
		"it ended in peace":               {etcd(0, "Completed", crc), ""},
		"the log":                         {etcd(1, "Error", crc), state.DamageCorrupt},
		"the database":                    {etcd(2, "Error", `{"msg":"failed to open database","error":"invalid database"}`), state.DamageCorrupt},
		"the database is gone":            {etcd(2, "Error", `panic: failed to recover v3 backend from snapshot`), state.DamageCorrupt},
		"a database without its middle":   {etcd(2, "Error", "go.etcd.io/bbolt.(*DB).freepages(0x1a41e293e6c8)\n\t/root/go.etcd.io/bbolt@v1.4.3/db.go:1251"), state.DamageCorrupt},
		"a database that is cut off":      {etcd(2, "Error", "created by go.etcd.io/bbolt.(*DB).freepages in goroutine 131"), state.DamageCorrupt},
		"a snapshot without its database": {etcd(2, "Error", "go.etcd.io/etcd/server/v3/etcdserver.recoverSnapshot({{0x7ffd, 0x8}})\n\t/root"), state.DamageCorrupt},
		"an older disk":                   {etcd(2, "Error", "panic: tocommit(9) is out of range [lastIndex(3)]. Was the raft log corrupted, truncated, or lost?"), state.DamageCorrupt},
		"and it is back":                  {back, ""},
		"it was removed":                  {etcd(0, "Completed", "the member has been permanently removed from the cluster"), ""},
		"too little memory":               {etcd(137, "OOMKilled", crc), ""},
		"a full disk":                     {etcd(1, "Error", `failed to repair WAL: write: no space left on device`), ""},
		"a disk that does not answer":     {etcd(1, "Error", `{"msg":"failed to open database","error":"checksum error: read: input/output error"}`), ""},
		"a wrong flag":                    {etcd(2, "Error", "flag provided but not defined: -x"), ""},
		"the trap of 3.7":                 {etcd(2, "Error", "panic: unmarshal should never fail"), ""},
		"peers that differ":               {etcd(1, "Error", "error validating peerURLs: member count is unequal"), ""},
		"no image": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: naming.ContainerEtcd, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "invalid database"}},
		}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pods.Damage(&corev1.Pod{Status: test.status}); got != test.want {
				t.Errorf("damage %q, want %q", got, test.want)
			}
		})
	}
}

// A pod that was never ready has not been since it was created.
func TestSinceWhenAPodIsNotReady(t *testing.T) {
	created, turned := time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
	for name, test := range map[string]struct {
		condition corev1.PodCondition
		want      time.Time
	}{
		"it ceased to be":         {corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(turned)}, turned},
		"nobody knows":            {corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(turned)}, turned},
		"nobody wrote down when":  {corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}, created},
		"it is":                   {corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(turned)}, created},
		"something else ceased":   {corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(turned)}, created},
		"nothing is said of that": {corev1.PodCondition{}, created},
	} {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}}
		p.Status.Conditions = []corev1.PodCondition{test.condition}
		if got := pods.NotReadySince(&p); !got.Equal(test.want) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// ill makes orders-1 a pod that is not ready since a time.
func ill(w *world, since time.Time, change func(*corev1.Pod)) {
	w.Helper()
	pod := w.pod("orders-1")
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(since)}}
	pod.Status.ContainerStatuses[0].Ready = false
	change(pod)
	w.put(podsResource(), pod)
	w.settle()
}

// podSeen is orders-1 as the planner sees it.
func podSeen(w *world) state.Pod {
	w.Helper()
	for _, p := range w.look().observed.Pods {
		if p.Name == "orders-1" {
			return p
		}
	}
	w.Fatal("no pod orders-1")
	return state.Pod{}
}

func putNode(w *world, name, host string, ready corev1.ConditionStatus, since time.Time) {
	w.Helper()
	w.put(corev1.SchemeGroupVersion.WithResource("nodes"), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: host}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			// Of each other condition False is the good news.
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
			{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(since)},
		}},
	})
}

// tie binds the claim of orders-1 to a volume that only one host has.
func tie(w *world, phase corev1.PersistentVolumeClaimPhase, hosts ...string) {
	w.Helper()
	w.put(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data-orders-1", Namespace: "shop", Labels: naming.OwnLabels(w.wish.EtcdCluster)},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: phase},
	})
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}}
	if len(hosts) > 0 {
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: hosts}},
		}}}}
	}
	w.put(corev1.SchemeGroupVersion.WithResource("persistentvolumes"), volume)
	w.settle()
}

func TestNodeThatHasTheVolume(t *testing.T) {
	formed(t, func(w *world) {
		since, earlier := time.Now().Add(-time.Hour).Truncate(time.Second), time.Now().Add(-2*time.Hour).Truncate(time.Second)
		check := func(when string, gone bool, want time.Time) {
			t.Helper()
			if p := podSeen(w); p.NodeGone != gone || !p.NodeGoneSince.Equal(want) || p.Damage != "" || !p.DamageSince.IsZero() {
				t.Errorf("%s: %+v", when, p)
			}
		}
		ill(w, since, func(p *corev1.Pod) { p.Spec.NodeName = "n1" })
		check("a claim without a volume", false, time.Time{})
		tie(w, corev1.ClaimBound)
		check("a volume that can go elsewhere", false, time.Time{})
		if err := w.api.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("persistentvolumes"), "", "pv-1"); err != nil {
			t.Fatal(err)
		}
		check("a volume that does not exist", false, time.Time{})
		tie(w, corev1.ClaimBound, "host-1", "host-2")
		check("a volume that one other node can have", false, time.Time{})
		tie(w, corev1.ClaimBound, "host-1")
		check("no such node", true, since)
		if err := w.api.Tracker().Delete(claimsResource(), "shop", "data-orders-1"); err != nil {
			t.Fatal(err)
		}
		w.settle()
		check("no claim", false, time.Time{})
		tie(w, corev1.ClaimBound, "host-1")
		putNode(w, "another-name", "host-1", corev1.ConditionTrue, earlier)
		check("a node of another name that is well", false, time.Time{})
		putNode(w, "another-name", "host-1", corev1.ConditionUnknown, earlier)
		check("a node that does not answer", true, earlier)
		w.api.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("nodes"), "", errors.New("no"))
		})
		check("nodes that may not be read", false, time.Time{})
		w.api.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("the API server is away")
		})
		_, err := w.r.observer.observe(w.Context(), w.wish)
		backuptest.WantError(t, err, "look for the node of orders-1", "away")
		w.api.PrependReactor("get", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("the volume is not told")
		})
		_, err = w.r.observer.observe(w.Context(), w.wish)
		backuptest.WantError(t, err, "look for the node of orders-1", "the volume is not told")
	})
}

// A volume is tied to a node only where it says so without an alternative: one that
// is not may come up elsewhere, and its data is not lost.
func TestHostThatAloneHasTheVolume(t *testing.T) {
	formed(t, func(w *world) {
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
			w.put(corev1.SchemeGroupVersion.WithResource("persistentvolumes"), volume)
			claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}}
			if got, err := w.r.observer.HostOfVolume(w.Context(), claim); err != nil || got != c.want {
				t.Errorf("%s: %q, want %q: %v", name, got, c.want, err)
			}
		}
	})
}

func TestVolumeThatIsLost(t *testing.T) {
	formed(t, func(w *world) {
		since := time.Now().Add(-time.Hour).Truncate(time.Second)
		ill(w, since, func(*corev1.Pod) {})
		tie(w, corev1.ClaimLost)
		if p := podSeen(w); p.Damage != state.DamageLost || !p.DamageSince.Equal(since) {
			t.Errorf("%+v", p)
		}
	})
}

// A damaged pod is seen the same way by the second look before an action, and a
// pod that is ready has nothing that could be wrong.
func TestDamageIsSeenTwice(t *testing.T) {
	formed(t, func(w *world) {
		since := time.Now().Add(-time.Hour).Truncate(time.Second)
		refusal := []corev1.ContainerStatus{ended(naming.ContainerGuard, 3, "Error", "empty")}
		ill(w, since, func(p *corev1.Pod) { p.Status.InitContainerStatuses = refusal })
		if p := podSeen(w); p.Damage != state.DamageEmpty || !p.DamageSince.Equal(since) {
			t.Errorf("%+v", p)
		}
		live, err := w.r.observer.readLive(w.Context(), w.wish)
		if err != nil {
			t.Fatal(err)
		}
		v := *w.look()
		v.observed.Pods = nil
		v.observeSet(live)
		if err := v.observeDamage(w.Context(), w.r.observer, live); err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(v.observed.Pods, func(p state.Pod) bool { return p.Damage == state.DamageEmpty }); i < 0 || v.observed.Pods[i].Name != "orders-1" {
			t.Errorf("past the caches: %+v", v.observed.Pods)
		}
		pod := w.pod("orders-1")
		pod.Status.Conditions[0].Status = corev1.ConditionTrue
		w.put(podsResource(), pod)
		w.settle()
		w.api.ClearActions()
		if p := podSeen(w); p.Damage != "" || p.NodeGone {
			t.Errorf("a pod that is ready: %+v", p)
		}
		if asked := strings.Join(w.api.requests(), " "); strings.Contains(asked, "nodes") {
			t.Errorf("asked for %s", asked)
		}
	})
}
