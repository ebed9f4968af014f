package observe

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/record/recordtest"
	"github.com/quorate/quorate/reconciler/state"
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
		c.status.Name = naming.ContainerEtcd
		pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{c.status}}}
		if got := pods.Describe(pod).Ran; got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		// A sidecar that runs, or has run, is no etcd that did.
		pod.Status.ContainerStatuses[0].Name = "mesh"
		if pods.Describe(pod).Ran {
			t.Errorf("%s: a sidecar counts as etcd", name)
		}
	}
}

// 363: what runs beside etcd tells nothing of etcd, be it a container or an init container that
// runs on; that one keeps etcd back only until it runs.
func TestSidecarsAreNotEtcd(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	spec := corev1.PodSpec{InitContainers: []corev1.Container{{Name: "mesh", RestartPolicy: &always}, {Name: naming.ContainerGuard}}, Containers: []corev1.Container{{Name: naming.ContainerEtcd}}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	runs := corev1.ContainerStatus{Name: naming.ContainerEtcd, State: running, Ready: true}
	unready := corev1.ContainerStatus{Name: naming.ContainerEtcd, State: running}
	crashes := corev1.ContainerStatus{Name: naming.ContainerEtcd, State: waitingFor("CrashLoopBackOff", ""), LastTerminationState: endedWith(2, "panic: wal")}
	waits := corev1.ContainerStatus{Name: naming.ContainerEtcd, State: waitingFor("PodInitializing", "")}
	unpulled := corev1.ContainerStatus{Name: "mesh", State: waitingFor("ImagePullBackOff", ""), Image: "mesh:1"}
	refuses := corev1.ContainerStatus{Name: naming.ContainerGuard, State: endedWith(1, "refuses")}
	one := func(s ...corev1.ContainerStatus) []corev1.ContainerStatus { return s }
	for name, c := range map[string]struct {
		init, containers []corev1.ContainerStatus
		want             state.Pod
	}{
		"a container beside a member that runs":   {nil, one(unpulled, runs), state.Pod{Ran: true, EtcdReady: true, Beside: "mesh: ImagePullBackOff: mesh:1 cannot be pulled"}},
		"beside one that is not ready":            {nil, one(unpulled, unready), state.Pod{Ran: true, Beside: "mesh: ImagePullBackOff: mesh:1 cannot be pulled"}},
		"beside one that crashes":                 {nil, one(unpulled, crashes), state.Pod{Ran: true, Crashed: true, Trouble: "etcd: panic: wal"}},
		"one that was started before etcd":        {one(unpulled), one(runs), state.Pod{Ran: true, EtcdReady: true, Beside: "mesh: ImagePullBackOff: mesh:1 cannot be pulled"}},
		"before one that crashes":                 {one(unpulled), one(crashes), state.Pod{Ran: true, Crashed: true, Trouble: "etcd: panic: wal"}},
		"one for which etcd waits":                {one(unpulled), one(waits), state.Pod{Unpulled: true, Barred: true, Trouble: "mesh: ImagePullBackOff: mesh:1 cannot be pulled"}},
		"one for which etcd waits without a word": {one(unpulled), nil, state.Pod{Unpulled: true, Barred: true, Trouble: "mesh: ImagePullBackOff: mesh:1 cannot be pulled"}},
		"the guard": {one(refuses), one(waits), state.Pod{Trouble: "guard: refuses"}},
	} {
		pod := pods.Describe(&corev1.Pod{Spec: spec, Status: corev1.PodStatus{InitContainerStatuses: c.init, ContainerStatuses: c.containers}})
		c.want.Created, c.want.Ordinal = pod.Created, pod.Ordinal
		if pod != c.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, pod, c.want)
		}
	}
}

// 365: of a pod that admission has changed, what its member starts with is told, and nothing else.
func TestPodThatAdmissionHasChanged(t *testing.T) {
	grace := int64(60)
	template := corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace, InitContainers: []corev1.Container{{Name: naming.ContainerGuard, Image: "guard:1"}},
		Containers: []corev1.Container{{Name: naming.ContainerEtcd, Image: "etcd:1", Args: []string{"--name=a"}, Env: []corev1.EnvVar{{Name: "ETCD_A", Value: "1"}}}},
	}
	for name, c := range map[string]struct {
		change func(*corev1.PodSpec)
		want   string
	}{
		"nothing":            {func(*corev1.PodSpec) {}, ""},
		"the grace period":   {func(s *corev1.PodSpec) { s.TerminationGracePeriodSeconds = new(int64(5)) }, "terminationGracePeriodSeconds (5, wanted 60)"},
		"the guard's image":  {func(s *corev1.PodSpec) { s.InitContainers[0].Image = "m/guard:1" }, "guard: image (m/guard:1, wanted guard:1)"},
		"etcd's":             {func(s *corev1.PodSpec) { s.Containers[0].Image = "m/etcd:1" }, "etcd: image (m/etcd:1, wanted etcd:1)"},
		"arguments":          {func(s *corev1.PodSpec) { s.Containers[0].Args = []string{"--name=b"} }, "etcd: command"},
		"a command":          {func(s *corev1.PodSpec) { s.Containers[0].Command = []string{"sh"} }, "etcd: command"},
		"a probe that kills": {func(s *corev1.PodSpec) { s.Containers[0].LivenessProbe = &corev1.Probe{} }, "etcd: livenessProbe"},
		"settings": {func(s *corev1.PodSpec) {
			s.Containers[0].Env = []corev1.EnvVar{{Name: "ETCD_A", Value: "2"}, {Name: "ETCD_B"}, {Name: "HTTP_PROXY"}}
		}, "etcd: env ETCD_A, etcd: env ETCD_B"},
		"another container": {func(s *corev1.PodSpec) {
			s.Containers = append(s.Containers, corev1.Container{Name: "mesh", Image: "mesh:1"})
		}, ""},
		"resources": {func(s *corev1.PodSpec) { s.Containers[0].Resources.Limits = corev1.ResourceList{} }, ""},
	} {
		pod := &corev1.Pod{Spec: *template.DeepCopy()}
		c.change(&pod.Spec)
		if got := pods.Mutated(pod, template); got != c.want {
			t.Errorf("%s: %q", name, got)
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
		Created: since.Time, Terminating: true, GoingSince: since.Time, Ran: true, Crashed: true, Trouble: "etcd: CrashLoopBackOff",
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
		"unknown reason":            {corev1.ContainerStatus{Name: naming.ContainerEtcd, State: running, RestartCount: 1}, true},
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
		if r, p := Replicas(set), Partition(set); r != test.replicas || p != test.partition {
			t.Errorf("%s: %d replicas, partition %d", name, r, p)
		}
	}
}

// I3: what is done to a member goes to its own address, with the recorded cluster.
func TestTargetIsTheMemberThatIsMeant(t *testing.T) {
	rec := recordtest.Formed()
	v := &View{Record: &rec, Endpoints: []etcd.Endpoint{{Member: "orders-0", Address: "10.0.0.1:2379"}, {Member: "orders-1", Address: "10.0.0.2:2379"}}}
	target, err := v.Target("orders-1", "a1")
	if err != nil || target.Member != "orders-1" || target.Address != "10.0.0.2:2379" || target.ID != "a1" || target.ClusterID != rec.ClusterID {
		t.Errorf("%+v, %v", target, err)
	}
	if target, err := v.Target("orders-2", "a2"); err == nil || !strings.Contains(err.Error(), "orders-2 has no address") {
		t.Errorf("%+v, %v", target, err)
	}
}
