package execute_test

import (
	"bytes"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
)

// 592: what is kept is what was decided on: not what the Secrets have got since, not in a Secret that
// somebody else has made of that name, and nothing else is deleted. Kept twice it is the same.
func TestKeepTrust(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		authority := backuptest.NewCertificate(t)
		theirs := map[string]*corev1.Secret{}
		for _, name := range []string{"their-server", "their-peer", "their-client"} {
			theirs[name] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Data: map[string][]byte{"ca.crt": authority.CA}}
		}
		c := clustertest.Orders(clustertest.NamedTLS)
		w.PutTheirs(theirs)
		keep := action.KeepTrust{Secret: certs.NamedTrust(c, theirs).Name}
		for range 2 {
			w.MustDo(keep)
			if s := secretIn(w, keep.Secret); s == nil || !certs.KeepsTrust(c, s) {
				t.Fatalf("kept: %v", s)
			}
		}
		if err := w.Do(action.KeepTrust{Secret: keep.Secret, Drop: []string{"their-client"}}); err == nil || secretIn(w, "their-client") == nil {
			t.Errorf("another's Secret was deleted: %v", err)
		}
		changed := theirs["their-peer"].DeepCopy()
		changed.Data["ca.crt"] = bytes.Join([][]byte{authority.CA, backuptest.NewCertificate(t).CA}, nil)
		if _, err := w.API.CoreV1().Secrets("shop").Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := w.Do(keep); !errors.Is(err, state.ErrChanged) {
			t.Errorf("kept what was not decided on: %v", err)
		}
		theirs["their-peer"] = changed
		other := certs.NamedTrust(c, theirs)
		other.Labels, other.Immutable = nil, nil
		if _, err := w.API.CoreV1().Secrets("shop").Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		backuptest.WantError(t, w.Do(action.KeepTrust{Secret: other.Name}), "create Secret "+other.Name, "it exists, and is not quorate's")
	}, clustertest.NamedTLS)
}
