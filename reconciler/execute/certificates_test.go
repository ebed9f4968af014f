package execute_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
)

// grownOld gives the cluster certificates of 300 days ago: two thirds of the leaves' year
// are over.
func grownOld(w *reconcilertest.World) {
	issued, err := certs.Issue(w.Wish.EtcdCluster, w.R.Options.Render.ClusterDomain, nil, time.Now().Add(-300*24*time.Hour))
	if err != nil {
		w.Fatal(err)
	}
	for _, old := range issued {
		secret, _ := w.Contents()["Secret "+old.Name].(*corev1.Secret)
		secret = secret.DeepCopy()
		secret.Data = old.Data
		w.Put(corev1.SchemeGroupVersion.WithResource("secrets"), secret)
	}
	w.Settle()
}

// 145: certificates that grow old are issued again by their authority, those that were
// named alone, and no member stops.
func TestCertificatesAreRenewed(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		grownOld(w)
		due := w.Look().Observed.Certificates.Due
		if want := []string{"orders-server", "orders-client", "orders-peer"}; !slices.Equal(due, want) {
			t.Fatalf("due are %q, want %q", due, want)
		}
		before := w.Contents()
		stepsOf(w, action.RenewCertificates{Secrets: due[:1]})
		if left := w.Look().Observed.Certificates.Due; !slices.Equal(left, due[1:]) {
			t.Errorf("due are %q, want what was not named", left)
		}
		for range 5 {
			if _, err := w.Pass(); err != nil {
				t.Fatal(err)
			}
		}
		c := w.Look().Observed.Certificates
		if len(c.Due)+len(c.Problems)+len(c.Missing) > 0 {
			t.Errorf("after some passes: %+v", c)
		}
		for _, name := range due {
			was, _ := before["Secret "+name].(*corev1.Secret)
			is, _ := w.Contents()["Secret "+name].(*corev1.Secret)
			pair, err := tls.X509KeyPair(is.Data[corev1.TLSCertKey], is.Data[corev1.TLSPrivateKeyKey])
			if err != nil || time.Until(pair.Leaf.NotAfter) < 300*24*time.Hour || !bytes.Equal(was.Data[naming.AuthorityCertKey], is.Data[naming.AuthorityCertKey]) {
				t.Errorf("%s lives until %s: %v", name, pair.Leaf.NotAfter, err)
			}
		}
		for name, is := range w.Contents() {
			if pod, ok := is.(*corev1.Pod); ok && before[name].(*corev1.Pod).UID != pod.UID {
				t.Errorf("%s was restarted", name)
			}
		}
		w.MustDo(action.DeleteObject{ObjectKind: "Secret", Name: "orders-client"})
		if err := w.Do(action.RenewCertificates{Secrets: due}); !errors.Is(err, state.ErrChanged) {
			t.Errorf("beside one that is missing: %v", err)
		}
	})
}

// 565: authorities that are gone with all that they have signed are replaced by no others while a member
// serves, as that trusts those from before; quorate would be refused, and members would lose each other.
func TestNoOtherAuthorityIsMadeForMembersThatServe(t *testing.T) {
	for name, gone := range map[string][]string{
		"that of clients": {"orders-ca", "orders-server", "orders-client"},
		"that of members": {"orders-peer-ca", "orders-peer"},
		"both":            {"orders-ca", "orders-server", "orders-client", "orders-peer-ca", "orders-peer"},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				for _, secret := range gone {
					if err := w.API.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), "shop", secret); err != nil {
						t.Fatal(err)
					}
				}
				w.Settle()
				for range 10 {
					if _, err := w.Pass(); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
				}
				for _, secret := range gone {
					if w.Contents()["Secret "+secret] != nil {
						t.Errorf("%s was made anew", secret)
					}
				}
				w.WantHold(decision.Unhealthy, "certificates", gone[0])
			})
		})
	}
}
