package observe_test

import (
	"errors"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/reconcilertest"
)

// Why a volume cannot grow; what nobody may read is no error.
func TestClassesThatDoNotGrow(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		classes := storagev1.SchemeGroupVersion.WithResource("storageclasses")
		for name, allowed := range map[string]*bool{"grows": new(true), "rigid": new(false), "silent": nil} {
			w.Put(classes, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, AllowVolumeExpansion: allowed})
		}
		check := func(class, want string) {
			t.Helper()
			got, err := w.R.Observer.Rigidity(w.Context(), class)
			if err != nil || !strings.Contains(got, want) || (got == "") != (want == "") {
				t.Errorf("%s: %q, want %q: %v", class, got, want, err)
			}
		}
		check("grows", "")
		check("rigid", "does not allow it")
		check("silent", "does not allow it")
		check("absent", "no longer exists")
		check("", "only volumes of a class can grow")
		answer := apierrors.NewForbidden(storagev1.Resource("storageclasses"), "grows", errors.New("no"))
		w.API.PrependReactor("get", "storageclasses", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, answer })
		check("grows", "quorate may not read StorageClass grows")
		answer = apierrors.NewInternalError(errors.New("away"))
		if _, err := w.R.Observer.Rigidity(w.Context(), "grows"); err == nil || !strings.Contains(err.Error(), "read StorageClass grows") {
			t.Errorf("%v", err)
		}
	})
}
