package reconciler

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/record/recordtest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func waitingFor(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func endedWith(code int32, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: message}}
}

func TestPodTroubleIsSaidInOneLine(t *testing.T) {
	etcd := func(s corev1.ContainerStatus) corev1.PodStatus {
		s.Name = naming.ContainerEtcd
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{s}}
	}
	refusal := "the volume of orders-1 is empty although orders-1 is a member: refusing to start"
	for name, test := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"running":  {etcd(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}), ""},
		"starting": {etcd(corev1.ContainerStatus{State: waitingFor("PodInitializing", "")}), ""},
		"creating": {etcd(corev1.ContainerStatus{State: waitingFor("ContainerCreating", "")}), ""},
		"done":     {etcd(corev1.ContainerStatus{State: endedWith(0, "")}), ""},
		"image that does not exist": {
			etcd(corev1.ContainerStatus{Image: "etcd:v3.5.99", State: waitingFor("ImagePullBackOff", "Back-off pulling image\nmanifest unknown")}),
			"etcd: ImagePullBackOff: etcd:v3.5.99 cannot be pulled",
		},
		"crash loop with last words": {
			etcd(corev1.ContainerStatus{
				State:                waitingFor("CrashLoopBackOff", "back-off 40s restarting failed container"),
				LastTerminationState: endedWith(2, "starting\npanic: unmarshal should never fail\n"),
			}),
			"etcd: panic: unmarshal should never fail",
		},
		"crash loop without words": {
			etcd(corev1.ContainerStatus{State: waitingFor("CrashLoopBackOff", "back-off 40s"), LastTerminationState: endedWith(2, "")}),
			"etcd: Error, exit code 2",
		},
		"the same words while it is tried again": {
			etcd(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: endedWith(1, "no space left")}),
			"etcd: no space left",
		},
		"ready again after a crash": {
			etcd(corev1.ContainerStatus{Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: endedWith(1, "no space left")}),
			"",
		},
		"just crashed": {etcd(corev1.ContainerStatus{State: endedWith(1, "no space left")}), "etcd: no space left"},
		"no reason at all": {
			etcd(corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error"}}}),
			"etcd: Error, exit code 137",
		},
		"81: out of memory, whatever it said last": {
			etcd(corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "OOMKilled", Message: "serving client traffic",
			}}}),
			"etcd: OOMKilled: it needs more than its memory limit of 64Mi",
		},
		"81: out of memory without a limit": {
			corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{
				Name: naming.ContainerGuard, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}},
			}}},
			"guard: OOMKilled: its node has no memory left for it",
		},
		"82: a panic, and where it happened": {
			etcd(corev1.ContainerStatus{State: endedWith(2, "panic: unmarshal should never fail\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:1 +0x1d4")}),
			"etcd: panic: unmarshal should never fail",
		},
		"82: a fatal line that says nothing": {etcd(corev1.ContainerStatus{State: endedWith(2, `{"level":"fatal","error":"x"}`)}), `etcd: {"level":"fatal","error":"x"}`},
		"82: a fatal line of etcd's, and where it happened": {
			etcd(corev1.ContainerStatus{State: endedWith(2, `{"level":"info","msg":"starting"}
{"level":"panic","ts":"2026-11-22T00:16:55Z","caller":"backend/backend.go:195","msg":"failed to open database","path":"/data/db","error":"open /data/db: is a directory","stacktrace":"a\nb"}
panic: failed to open database

goroutine 1 [running]:`)}),
			"etcd: failed to open database: open /data/db: is a directory",
		},
		"the guard refuses": {
			corev1.PodStatus{
				InitContainerStatuses: []corev1.ContainerStatus{{Name: naming.ContainerGuard, State: endedWith(1, refusal)}},
				ContainerStatuses:     []corev1.ContainerStatus{{Name: naming.ContainerEtcd, State: waitingFor("PodInitializing", "")}},
			},
			"guard: " + refusal,
		},
		"scheduled": {
			corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, Message: "x"}}}, "",
		},
		"unschedulable": {
			corev1.PodStatus{Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available: 3 Insufficient memory.",
			}}},
			"not scheduled: 0/3 nodes are available: 3 Insufficient memory.",
		},
		"endless words": {
			etcd(corev1.ContainerStatus{State: waitingFor("CreateContainerError", strings.Repeat("x", 1000))}),
			"etcd: CreateContainerError: " + strings.Repeat("x", 300) + "…",
		},
	} {
		t.Run(name, func(t *testing.T) {
			limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
			spec := corev1.PodSpec{InitContainers: []corev1.Container{{Name: naming.ContainerGuard}}, Containers: []corev1.Container{{Name: naming.ContainerEtcd, Resources: corev1.ResourceRequirements{Limits: limits}}}}
			if got := pods.Trouble(&corev1.Pod{Spec: spec, Status: test.status}); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// A container that has ended ran, also where its restarts are forgotten.
func TestPodThatRan(t *testing.T) {
	for name, c := range map[string]struct {
		status corev1.ContainerStatus
		want   bool
	}{
		"never":           {corev1.ContainerStatus{State: waitingFor("PodInitializing", "")}, false},
		"runs":            {corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, true},
		"has ended":       {corev1.ContainerStatus{State: endedWith(1, "")}, true},
		"ended last time": {corev1.ContainerStatus{State: waitingFor("CrashLoopBackOff", ""), LastTerminationState: endedWith(1, "")}, true},
		"was restarted":   {corev1.ContainerStatus{State: waitingFor("CrashLoopBackOff", ""), RestartCount: 1}, true},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{c.status}}}
		if got := pods.Describe(pod).Ran; got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// What another container is told is not the member's quota.
func TestQuotaIsThatOfEtcd(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "sidecar", Args: []string{"--quota-backend-bytes=1"}}, {Name: naming.ContainerEtcd, Args: []string{"--quota-backend-bytes=8"}},
	}}}
	if got := pods.PodQuota(pod); got != 8 {
		t.Errorf("%d", got)
	}
}

func TestPodAsThePlannerSeesIt(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	pod := pods.Describe(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "orders-10", UID: "u", CreationTimestamp: since, DeletionTimestamp: &since,
			Annotations: map[string]string{naming.AnnotationTemplateHash: "abc", naming.AnnotationVersion: "3.6.16"},
		},
		Status: corev1.PodStatus{
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: naming.ContainerEtcd, RestartCount: 1, State: waitingFor("CrashLoopBackOff", "")}},
		},
	})
	want := state.Pod{
		Name: "orders-10", Ordinal: 10, UID: "u", Template: "abc", Version: "3.6.16", Ready: true, ReadySince: since.Time,
		Created: since.Time, Terminating: true, Ran: true, Crashed: true, Trouble: "etcd: CrashLoopBackOff",
	}
	if pod != want {
		t.Errorf("got  %+v\nwant %+v", pod, want)
	}
	if neverRan := pods.Describe(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: waitingFor("ImagePullBackOff", "")}}}}); neverRan.Ran {
		t.Error("a container without an image counts as one that ran")
	}
}

// A member that runs is told from one that runs between two crashes.
func TestPodThatHasCrashed(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
	for name, test := range map[string]struct {
		status corev1.ContainerStatus
		want   bool
	}{
		"never ended":               {corev1.ContainerStatus{Name: naming.ContainerEtcd, State: running}, false},
		"runs after a crash":        {corev1.ContainerStatus{Name: naming.ContainerEtcd, State: running, LastTerminationState: ended(2), RestartCount: 1}, true},
		"runs after it was stopped": {corev1.ContainerStatus{Name: naming.ContainerEtcd, State: running, LastTerminationState: ended(0), RestartCount: 1}, false},
		"has just crashed":          {corev1.ContainerStatus{Name: naming.ContainerEtcd, State: ended(137)}, true},
		"nobody knows why":          {corev1.ContainerStatus{Name: naming.ContainerEtcd, State: running, RestartCount: 1}, true},
		"another container":         {corev1.ContainerStatus{Name: "sidecar", State: running, LastTerminationState: ended(1), RestartCount: 1}, false},
	} {
		if pod := pods.Describe(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{test.status}}}); pod.Crashed != test.want {
			t.Errorf("%s: %+v", name, pod)
		}
	}
}

// Only a pod whose etcd runs on since before has ceased to be ready: one that just
// starts never was.
func TestPodThatCeasedToBeReady(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		started time.Time
		want    bool
	}{
		"cut off later":    {noon.Add(-time.Hour), true},
		"just starts":      {noon.Add(time.Second), false},
		"etcd did not run": {time.Time{}, false},
	} {
		state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(test.started)}}
		if test.started.IsZero() {
			state = waitingFor("PodInitializing", "")
		}
		pod := pods.Describe(&corev1.Pod{Status: corev1.PodStatus{
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(noon)}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: naming.ContainerEtcd, State: state}},
		}})
		if got := pod.UnreadySince.Equal(noon); got != test.want || pod.Ready {
			t.Errorf("%s: %+v", name, pod)
		}
	}
}

func TestImmutableChangesAreNamed(t *testing.T) {
	slow, fast := "slow", "fast"
	for name, test := range map[string]struct {
		edit func(*schema.EtcdCluster)
		want []string
	}{
		"nothing":   {func(*schema.EtcdCluster) {}, nil},
		"same size": {func(c *schema.EtcdCluster) { c.Spec.Storage.Size = resource.MustParse("8192Mi") }, nil},
		"more":      {func(c *schema.EtcdCluster) { c.Spec.Storage.Size = resource.MustParse("16Gi") }, nil},
		"less":      {func(c *schema.EtcdCluster) { c.Spec.Storage.Size = resource.MustParse("4Gi") }, []string{"spec.storage.size (8Gi to 4Gi)"}},
		"class, insisting": {func(c *schema.EtcdCluster) {
			c.Spec.Storage.StorageClassName, c.Spec.Storage.ClassChange = &fast, schema.ClassChangeReplace
		}, nil},
		"class":             {func(c *schema.EtcdCluster) { c.Spec.Storage.StorageClassName = &fast }, []string{"spec.storage.storageClassName"}},
		"class left out":    {func(c *schema.EtcdCluster) { c.Spec.Storage.StorageClassName = nil }, nil},
		"no more TLS":       {clustertest.DisableTLS, []string{"spec.tls.mode"}},
		"TLS off and a mix": {func(c *schema.EtcdCluster) { clustertest.DisableTLS(c); c.Spec.Storage.StorageClassName = &fast }, []string{"spec.storage.storageClassName", "spec.tls.mode"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.StatefulSet{}
			set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &slow,
				Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("8Gi")}},
			}}}
			set.Spec.Template.Spec.Volumes = clustertest.MountedSecrets("orders-server", "orders-peer")
			if got := immutableChanges(set, clustertest.Orders(test.edit)); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestRevisionTemplate(t *testing.T) {
	text, err := json.Marshal(map[string]any{"spec": map[string]any{"template": corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{naming.AnnotationTemplateHash: "abc", naming.AnnotationVersion: "3.6.16"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	revision := func(text []byte) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: text}}
	}
	for name, test := range map[string]struct {
		revision      *appsv1.ControllerRevision
		hash, version string
	}{
		"good": {revision(text), "abc", "3.6.16"}, "none": {nil, "", ""},
		"unreadable": {revision([]byte("{")), "", ""}, "empty": {revision([]byte("{}")), "", ""},
	} {
		if hash, version := revisionTemplate(test.revision); hash != test.hash || version != test.version {
			t.Errorf("%s: %q, %q", name, hash, version)
		}
	}
}

func TestWhatTheSetIsAtRest(t *testing.T) {
	formed(t, func(w *world) {
		v := w.look()
		s := v.observed.Set
		if s.Replicas != 3 || s.Partition != 3 || !s.Settled || len(s.Immutable) > 0 ||
			s.Template != v.desired.Template || s.CurrentTemplate != v.desired.Template || s.CurrentVersion != "3.6.16" || s.UID != string(w.set().UID) {
			t.Errorf("the set is %+v, wanted template %s", s, v.desired.Template)
		}
		if len(v.observed.Pods) != 3 || len(v.observed.Volumes) != 3 || len(v.endpoints) != 3 {
			t.Errorf("%d pods, %d volumes, %d endpoints", len(v.observed.Pods), len(v.observed.Volumes), len(v.endpoints))
		}
		for _, o := range v.observed.Objects {
			if o.State != state.ObjectInSync {
				t.Errorf("%s %s is %s: %s", o.Kind, o.Name, o.State, o.Detail)
			}
		}
		if v.notAfter.IsZero() {
			t.Error("no certificate expires")
		}
	})
}

// What a StatefulSet leaves out is what the API server takes for it.
func TestDefaultsOfASet(t *testing.T) {
	for name, test := range map[string]struct {
		spec                appsv1.StatefulSetSpec
		replicas, partition int32
	}{
		"nothing is said": {appsv1.StatefulSetSpec{}, 1, 0},
		"no partition":    {appsv1.StatefulSetSpec{Replicas: new(int32(3)), UpdateStrategy: appsv1.StatefulSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{}}}, 3, 0},
		"both":            {appsv1.StatefulSetSpec{Replicas: new(int32(0)), UpdateStrategy: appsv1.StatefulSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2))}}}, 0, 2},
	} {
		set := &appsv1.StatefulSet{Spec: test.spec}
		if r, p := replicasOf(set), partitionOf(set); r != test.replicas || p != test.partition {
			t.Errorf("%s: %d replicas, partition %d", name, r, p)
		}
	}
}

func TestControllerThatHasNotSeenTheChangeIsUnsettled(t *testing.T) {
	formed(t, func(w *world) {
		set := w.set()
		set.Generation++
		w.put(setsResource(), set)
		synctest.Wait()
		if w.look().observed.Set.Settled {
			t.Error("settled, although the controller is a generation behind")
		}
	})
}

// A member is dialled by its pod's address, under the name in its certificate,
// and dialled anew when either changes.
func TestEndpointsFollowPodsAndCredentials(t *testing.T) {
	formed(t, func(w *world) {
		before := w.look().endpoints[1]
		if before.Member != "orders-1" || before.Host != "orders-1.orders-peers.shop.svc" || before.Address != "10.0.0.1:2379" {
			t.Errorf("endpoint %+v", before)
		}
		config, err := before.TLS()
		if err != nil || config.ServerName != before.Host {
			t.Errorf("TLS %v", err)
		}
		w.deletePod("orders-1")
		w.settle()
		after := w.look().endpoints[1]
		if after.Incarnation == before.Incarnation {
			t.Error("the successor of a pod is dialled over its connection")
		}
		secret, _ := w.contents()["Secret orders-client"].(*corev1.Secret)
		w.put(corev1.SchemeGroupVersion.WithResource("secrets"), secret)
		synctest.Wait()
		if w.look().endpoints[1].Incarnation == after.Incarnation {
			t.Error("new credentials are not used")
		}
	})
}

func TestPodsThatCannotBeDialled(t *testing.T) {
	formed(t, func(w *world) {
		terminating, addressless := w.pod("orders-1"), w.pod("orders-2")
		terminating.DeletionTimestamp, terminating.Finalizers = &metav1.Time{Time: time.Now()}, []string{"test/hold"}
		addressless.Status.PodIP = ""
		w.put(podsResource(), terminating)
		w.put(podsResource(), addressless)
		synctest.Wait()
		v := w.look()
		if len(v.endpoints) != 1 || v.endpoints[0].Member != "orders-0" {
			t.Errorf("endpoints %+v", v.endpoints)
		}
		if _, err := v.target("orders-2", "a2"); err == nil {
			t.Error("a member without an address can be asked")
		}
	})
}

func TestClearTextNeedsNoCertificates(t *testing.T) {
	formed(t, func(w *world) {
		v := w.look()
		if len(v.endpoints) != 3 || v.endpoints[0].TLS != nil || !v.notAfter.IsZero() {
			t.Errorf("endpoints %+v", v.endpoints)
		}
	}, clustertest.DisableTLS)
}

func TestMembersAreNotDialledWithoutCredentials(t *testing.T) {
	formed(t, func(w *world) {
		if err := w.api.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), "shop", "orders-client"); err != nil {
			w.Fatal(err)
		}
		synctest.Wait()
		v := w.look()
		if len(v.endpoints) > 0 || !slices.Contains(v.observed.Certificates.Missing, "orders-client") {
			t.Errorf("endpoints %+v, certificates %+v", v.endpoints, v.observed.Certificates)
		}
	})
}

// I3: what is done to a member goes to its own address, with the recorded cluster.
func TestTargetIsTheMemberThatIsMeant(t *testing.T) {
	rec := recordtest.Formed()
	v := &view{record: &rec, endpoints: []etcd.Endpoint{{Member: "orders-0", Address: "10.0.0.1:2379"}, {Member: "orders-1", Address: "10.0.0.2:2379"}}}
	target, err := v.target("orders-1", "a1")
	if err != nil || target.Member != "orders-1" || target.Address != "10.0.0.2:2379" || target.ID != "a1" || target.ClusterID != rec.ClusterID {
		t.Errorf("%+v, %v", target, err)
	}
	if target, err := v.target("orders-2", "a2"); err == nil || !strings.Contains(err.Error(), "orders-2 has no address") {
		t.Errorf("%+v, %v", target, err)
	}
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
		"StatefulSet orders":                      {setsResource(), &appsv1.StatefulSet{ObjectMeta: name("orders", nil)}},
		"ConfigMap orders-record":                 {core.WithResource("configmaps"), &corev1.ConfigMap{ObjectMeta: name("orders-record", nil)}},
		"Service orders-client":                   {core.WithResource("services"), &corev1.Service{ObjectMeta: name("orders-client", nil)}},
		"Service orders-peers":                    {core.WithResource("services"), &corev1.Service{ObjectMeta: name("orders-peers", map[string]string{naming.LabelCluster: "orders"})}},
		"PersistentVolumeClaim data-orders-2":     {core.WithResource("persistentvolumeclaims"), &corev1.PersistentVolumeClaim{ObjectMeta: name("data-orders-2", nil)}},
		"PodDisruptionBudget orders":              {policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), &policyv1.PodDisruptionBudget{ObjectMeta: name("orders", map[string]string{"app.kubernetes.io/managed-by": "quorate"})}},
		"Service orders-client of another orders": {core.WithResource("services"), &corev1.Service{ObjectMeta: name("orders-client", map[string]string{"app.kubernetes.io/managed-by": "quorate", naming.LabelCluster: "other"})}},
	} {
		t.Run(kind, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.put(foreign.resource, foreign.object)
				p := w.until(func(p plan.Plan) bool { return p.Hold != nil && p.Hold.Kind == plan.HoldRefused })
				if want, _, _ := strings.Cut(kind, " of "); !strings.Contains(p.Hold.Message, want) || len(w.api.writes()) > 0 {
					t.Errorf("the hold says %q", p.Hold.Message)
				}
				seen := w.look().observed.Objects
				if slices.ContainsFunc(seen, func(o state.Object) bool { return o.State != state.ObjectForeign }) {
					t.Errorf("besides, these are said to be missing or to differ: %+v", seen)
				}
			})
		})
	}
}

// A volume that an earlier cluster of the name left may be somebody's only copy.
func TestVolumesLeftBehindAreNotTaken(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "data-orders-0", Namespace: "shop", Labels: naming.OwnLabels(w.wish.EtcdCluster)},
		})
		synctest.Wait()
		p := w.until(func(p plan.Plan) bool { return p.Hold != nil && p.Hold.Kind == plan.HoldRefused })
		if !strings.Contains(p.Hold.Message, "only copy") || len(w.api.writes()) > 0 {
			t.Errorf("the hold says %q", p.Hold.Message)
		}
	})
}

// What kubectl edit changes is named with its manager, and brought back.
func TestEditsByHandAreDrift(t *testing.T) {
	edits := metav1.UpdateOptions{FieldManager: "kubectl-edit"}
	for kind, test := range map[string]struct {
		edit  func(w *world) error
		field string
	}{
		"Service orders-client": {func(w *world) error {
			s, _ := w.contents()["Service orders-client"].(*corev1.Service)
			s.Spec.Type = corev1.ServiceTypeNodePort
			_, err := w.api.CoreV1().Services("shop").Update(w.Context(), s, edits)
			return err
		}, "spec.type"},
		"PodDisruptionBudget orders": {func(w *world) error {
			b, _ := w.contents()["PodDisruptionBudget orders"].(*policyv1.PodDisruptionBudget)
			b.Spec.MinAvailable.IntVal = 0
			_, err := w.api.PolicyV1().PodDisruptionBudgets("shop").Update(w.Context(), b, edits)
			return err
		}, "spec.minAvailable"},
		"StatefulSet orders": {func(w *world) error {
			set := w.set()
			set.Spec.Template.Spec.Containers[0].Image = "evil:latest"
			_, err := w.api.AppsV1().StatefulSets("shop").Update(w.Context(), set, edits)
			return err
		}, "spec.template"},
	} {
		t.Run(kind, func(t *testing.T) {
			formed(t, func(w *world) {
				if err := test.edit(w); err != nil {
					w.Fatal(err)
				}
				synctest.Wait()
				drifted := slices.DeleteFunc(w.look().observed.Objects, func(o state.Object) bool { return o.State != state.ObjectDrifted })
				if len(drifted) != 1 || drifted[0].Kind+" "+drifted[0].Name != kind ||
					!strings.Contains(drifted[0].Detail, test.field) || !strings.Contains(drifted[0].Detail, "by kubectl-edit at ") {
					t.Errorf("drifted: %+v", drifted)
				}
				w.mustPass()
				if steps := w.lines("step", "action"); !slices.Equal(steps, []string{"apply " + kind}) {
					t.Errorf("steps %q", steps)
				}
				w.untilIdle()
			})
		})
	}
}

func TestMissingObjectsComeBack(t *testing.T) {
	for kind, resource := range map[string]apischema.GroupVersionResource{
		"Service orders-client":      corev1.SchemeGroupVersion.WithResource("services"),
		"PodDisruptionBudget orders": policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"),
	} {
		formed(t, func(w *world) {
			_, name, _ := strings.Cut(kind, " ")
			if err := w.api.Tracker().Delete(resource, "shop", name); err != nil {
				w.Fatal(err)
			}
			synctest.Wait()
			w.mustPass()
			if w.contents()[kind] == nil {
				t.Errorf("%s is still gone", kind)
			}
		})
	}
}

// A newer quorate restarts nothing: the guard's image stays until another cause
// rolls the pods.
func TestNewerGuardWaitsForAnotherCause(t *testing.T) {
	formed(t, func(w *world) {
		w.reconfigure(func(o *Options) { o.Render.GuardImage = "ghcr.io/quorate/quorate:v0.2.0" })
		if p, err := w.r.Plan(w.Context(), w.wish); err != nil || !p.Idle() {
			t.Errorf("the plan of a newer quorate is %s, %v", p.Text(), err)
		}
		w.commit(clustertest.SetVersion("3.6.16"))
		w.untilIdle()
		if image := guardImageOf(w.set()); image != "ghcr.io/quorate/quorate:v0.2.0" {
			t.Errorf("after a roll the guard is %s", image)
		}
	}, clustertest.SetVersion("3.6.12"))
}

func TestDamagedRecordIsAHold(t *testing.T) {
	formed(t, func(w *world) {
		damage(w)
		synctest.Wait()
		p := w.until(func(p plan.Plan) bool { return p.Hold != nil })
		if p.Hold.Kind != plan.HoldRefused || !strings.Contains(p.Hold.Message, "record") || len(w.api.writes()) > 0 {
			t.Errorf("the hold is %+v", p.Hold)
		}
	})
}

func TestExpiredCertificateHolds(t *testing.T) {
	formed(t, func(w *world) {
		w.reconfigure(func(o *Options) { o.Now = func() time.Time { return time.Now().AddDate(20, 0, 0) } })
		p := w.until(func(p plan.Plan) bool { return p.Hold != nil })
		if p.Hold.Kind != plan.HoldUnhealthy || !strings.Contains(p.Hold.Message, "expired on") || len(w.api.writes()) > 0 {
			t.Errorf("the hold is %+v", p.Hold)
		}
	})
}
