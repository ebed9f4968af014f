package observe_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
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
