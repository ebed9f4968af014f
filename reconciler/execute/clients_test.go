package execute_test

import (
	"crypto/tls"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/schema"
)

// ofClients names applications in the file.
func ofClients(names ...string) func(c *schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) {
		c.Spec.TLS.Clients = nil
		for _, name := range names {
			c.Spec.TLS.Clients = append(c.Spec.TLS.Clients, schema.TLSClient{Name: name, CommonName: name})
		}
	}
}

// secretIn is a Secret of the world, nil for none.
func secretIn(w *reconcilertest.World, name string) *corev1.Secret {
	secret, _ := w.Contents()["Secret "+name].(*corev1.Secret)
	return secret
}

// 495: an application in Git gets a certificate in a Secret of its own. What is deleted or
// damaged comes back, and no member stops. At rest nothing is asked.
func TestClientsGetCertificates(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		before := w.Contents()
		w.Commit(ofClients("checkout", "reports"))
		w.UntilIdle()
		for name, spoil := range map[string]func(*corev1.Secret){
			"orders-client-checkout": func(s *corev1.Secret) { delete(s.Data, corev1.TLSPrivateKeyKey) },
			"orders-client-reports":  func(s *corev1.Secret) { s.Data = secretIn(w, "orders-client").DeepCopy().Data },
		} {
			secret := secretIn(w, name).DeepCopy()
			if _, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]); err != nil {
				t.Fatal(err)
			}
			secret.Annotations = map[string]string{"example.com/reload": "yes"}
			spoil(secret)
			w.Put(corev1.SchemeGroupVersion.WithResource("secrets"), secret)
			w.Settle()
			w.UntilIdle()
			again := secretIn(w, name)
			pair, err := tls.X509KeyPair(again.Data[corev1.TLSCertKey], again.Data[corev1.TLSPrivateKeyKey])
			if err != nil || "orders-client-"+pair.Leaf.Subject.CommonName != name || again.Annotations["example.com/reload"] != "yes" {
				t.Errorf("%s is for %v, %v", name, pair.Leaf, err)
			}
			w.MustDo(action.DeleteObject{ObjectKind: "Secret", Name: name})
			w.Settle()
			w.UntilIdle()
			if secretIn(w, name) == nil {
				t.Errorf("%s did not come back", name)
			}
		}
		for name, is := range w.Contents() {
			if pod, ok := is.(*corev1.Pod); ok && before[name].(*corev1.Pod).UID != pod.UID {
				t.Errorf("%s was restarted", name)
			}
		}
		w.MustPass()
		w.API.ClearActions()
		w.MustPass()
		if requests := w.API.Requests(); len(requests) > 0 {
			t.Errorf("requests at rest: %q", requests)
		}
	})
}

// 495: a Secret that quorate has not made is not written, whatever labels it has, and is
// reported; everything else goes on, the other applications included.
func TestAForeignSecretOfAClientIsLeftAlone(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"without labels":     nil,
		"of another cluster": {"quorate.dev/cluster": "other", "quorate.dev/client": "checkout"},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				w.Put(corev1.SchemeGroupVersion.WithResource("secrets"), &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Name: "orders-client-checkout", Namespace: "shop", Labels: labels},
					Type:       corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": []byte("theirs"), "tls.key": []byte("theirs")},
				})
				w.Commit(ofClients("checkout", "reports"))
				w.Settle()
				w.Until(func(p decision.Plan) bool { return p.Hold != nil && p.Hold.Rule == "expiry" })
				w.WantHold(decision.Unhealthy, "expiry", "the Secret orders-client-checkout, in which checkout is to find its certificate, is not quorate's")
				if s := secretIn(w, "orders-client-checkout"); string(s.Data["tls.key"]) != "theirs" {
					t.Error("it was written")
				}
				if secretIn(w, "orders-client-reports") == nil {
					t.Error("the other application has none")
				}
				if err := w.Do(action.IssueClientCertificates{Secrets: []string{"orders-client-checkout"}}); err == nil && string(secretIn(w, "orders-client-checkout").Data["tls.key"]) != "theirs" {
					t.Error("an old decision wrote it")
				}
				w.Commit(ofClients("reports"))
				w.UntilIdle()
			})
		})
	}
}
