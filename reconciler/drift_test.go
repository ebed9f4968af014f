package reconciler

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/plan/action"
)

// TestAdditionWhileARollWaits: what was added to the template goes at once, and
// what was changed in it stays until the roll puts it right.
func TestAdditionWhileARollWaits(t *testing.T) {
	formed(t, func(w *world) {
		wanted := len(w.set().Spec.Template.Spec.Containers[0].Args)
		w.wish.Spec.Version = "3.6.15"
		w.wish.Digest = ""
		w.editSet(func(s *appsv1.StatefulSet) {
			etcd := &s.Spec.Template.Spec.Containers[0]
			etcd.Env = append(etcd.Env, corev1.EnvVar{Name: "ETCD_LOG_LEVEL", Value: "debug"})
			etcd.Args = append(etcd.Args, "--log-level=debug")
		})
		synctest.Wait()
		if o := w.look().observed.Objects; o[len(o)-1].Detail == "" || !strings.HasPrefix(o[len(o)-1].Detail, `.spec.template.spec.containers[name="etcd"].env[name="ETCD_LOG_LEVEL"] (by kubectl-edit`) {
			t.Errorf("the objects are %+v", o)
		}
		w.mustDo(action.ApplyObject{ObjectKind: "StatefulSet", Name: "orders"})
		etcd := w.set().Spec.Template.Spec.Containers[0]
		if slices.ContainsFunc(etcd.Env, func(e corev1.EnvVar) bool { return e.Name == "ETCD_LOG_LEVEL" }) {
			t.Error("the variable is still there")
		}
		if len(etcd.Args) != wanted+1 || !strings.HasSuffix(etcd.Image, "3.6.16") {
			t.Errorf("the template was changed: image %s, args %q", etcd.Image, etcd.Args)
		}
	})
}

// editSet does to the StatefulSet what kubectl edit does: an Update by another manager.
func (w *world) editSet(change func(*appsv1.StatefulSet)) {
	w.Helper()
	set := w.set()
	change(set)
	if _, err := w.api.AppsV1().StatefulSets("shop").Update(w.Context(), set, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
		w.Fatal(err)
	}
}
