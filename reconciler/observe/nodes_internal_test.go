package observe

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/state"
)

// 80: what the guard has found is told without its advice.
func TestWhatTheGuardHasFound(t *testing.T) {
	for message, want := range map[string]string{
		"the volume belongs to another; put it back": "the volume belongs to another",
		"the volume belongs to another":              "the volume belongs to another",
	} {
		p := corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{clustertest.Ended(naming.ContainerGuard, 4, "Error", message)}}}
		if got := pods.Found(&p); got != want {
			t.Errorf("%q: found %q, want %q", message, got, want)
		}
	}
	if got := pods.Found(&corev1.Pod{}); got != "" {
		t.Errorf("a guard that has not looked found %q", got)
	}
}

func TestDamageOfAPod(t *testing.T) {
	passed := corev1.ContainerStatus{Name: naming.ContainerGuard, Ready: true, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
	etcd := func(code int32, reason, message string) corev1.PodStatus {
		return corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{passed}, ContainerStatuses: []corev1.ContainerStatus{clustertest.Ended(naming.ContainerEtcd, code, reason, message)}}
	}
	refused := func(code int32) corev1.PodStatus {
		return corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{clustertest.Ended(naming.ContainerGuard, code, "Error", "no")}}
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
		"the guard finds an older volume": {refused(8), state.DamageOlder},
		"the guard cannot read it":        {refused(5), state.DamageCorrupt},
		"the guard cannot decide":         {refused(1), ""},
		"the guard knows no such member":  {refused(6), ""},
		"the guard was killed":            {refused(137), ""},
		"the guard looks again":           {again, ""},
		"the guard looks":                 {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: naming.ContainerGuard}}}, ""},
		"another container ended like it": {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{clustertest.Ended("sidecar", 3, "Error", "no")}}, ""},
		"another container's log":         {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{clustertest.Ended("sidecar", 1, "Error", crc)}}, ""},
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
		"unknown":                 {corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(turned)}, turned},
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
