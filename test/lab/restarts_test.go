package lab

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/quorate/quorate/reconciler/naming"
)

func TestRestartsHaveTheFirstTimeOfEachStep(t *testing.T) {
	begin := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	pod := func(uid string, changes ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orders-2", UID: types.UID(uid)}}
		for _, change := range changes {
			change(p)
		}
		return p
	}
	is := func(condition corev1.PodConditionType) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue})
		}
	}
	going := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: begin} }
	running := func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: naming.ContainerEtcd, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	r := newRestarts([]corev1.Pod{*pod("a")})
	for i, e := range []watch.Event{
		{Type: watch.Modified, Object: pod("a", is(corev1.PodReady))},
		{Type: watch.Modified, Object: pod("a", going)},
		{Type: watch.Modified, Object: pod("a", going)},
		{Type: watch.Deleted, Object: pod("a", going)},
		{Type: watch.Added, Object: pod("b")},
		{Type: watch.Modified, Object: pod("b")},
		{Type: watch.Modified, Object: pod("b", is(corev1.PodInitialized))},
		{Type: watch.Modified, Object: pod("b", is(corev1.PodInitialized), running)},
		{Type: watch.Modified, Object: pod("b", is(corev1.PodInitialized), running, is(corev1.PodReady))},
		{Type: watch.Modified, Object: pod("b", going, running)}, // a restart that is not over
	} {
		p, _ := e.Object.(*corev1.Pod)
		r.note(e.Type, p, at(i))
	}
	want := Restart{"orders-2", at(1), at(3), at(4), at(6), at(7), at(8)}
	if got := r.whole(); len(got) != 1 || got[0] != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
