package execute_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// copiedTo has the application checkout find its certificate in other namespaces, too.
func copiedTo(namespaces ...string) func(c *schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) {
		ofClients("checkout")(c)
		c.Spec.TLS.Clients[0].Namespaces = namespaces
	}
}

// first commits an edit, and has actions done.
func first(edit func(c *schema.EtcdCluster), actions ...action.Action) func(w *reconcilertest.World) {
	return func(w *reconcilertest.World) {
		w.Commit(edit)
		reconcilertest.First(actions...)(w)
	}
}

// copyIn is the copy in a namespace, nil for none.
func copyIn(w *reconcilertest.World, namespace string) *corev1.Secret {
	o, err := w.API.Tracker().Get(corev1.SchemeGroupVersion.WithResource("secrets"), namespace, "orders-client-checkout")
	if err != nil {
		return nil
	}
	secret, _ := o.(*corev1.Secret)
	return secret
}

// sameAsSource reports whether the copy in a namespace holds what its source does.
func sameAsSource(w *reconcilertest.World, namespace string) bool {
	is, source := copyIn(w, namespace), secretIn(w, "orders-client-checkout")
	if is == nil || is.Type != corev1.SecretTypeTLS || len(is.Data) != 3 {
		return false
	}
	for _, key := range []string{"tls.crt", "tls.key", "ca.crt"} {
		if len(source.Data[key]) == 0 || !bytes.Equal(is.Data[key], source.Data[key]) {
			return false
		}
	}
	return true
}

// refusing has the API server answer writes of Secrets of a namespace with an error.
func refusing(w *reconcilertest.World, namespace string, err func() error) {
	answer := func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetNamespace() == namespace && err() != nil {
			return true, nil, err()
		}
		return false, nil, nil
	}
	for _, verb := range []string{"create", "update", "delete"} {
		w.API.PrependReactor(verb, "secrets", answer)
	}
}

// forbidden is what the API server says of a right that is missing.
func forbidden() error {
	return apierrors.NewForbidden(corev1.Resource("secrets"), "orders-client-checkout", fmt.Errorf("quorate cannot write it there"))
}

// 498: the Secret of an application is kept in other namespaces as it is in the cluster's: what is
// missing, damaged or old there comes back, a namespace that leaves the file loses it, and nothing
// else is written or restarted. At rest nothing is asked.
func TestCopiesAreKeptInOtherNamespaces(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		before := w.Contents()
		w.Commit(copiedTo("web", "lab"))
		w.UntilIdle()
		if !sameAsSource(w, "web") || !sameAsSource(w, "lab") {
			t.Fatal("a copy is not what its source is")
		}
		if l := copyIn(w, "web").Labels; l["app.kubernetes.io/managed-by"] != "quorate" || l["quorate.dev/client-of"] != "orders" || l["quorate.dev/client-of-namespace"] != "shop" ||
			l["quorate.dev/client"] != "checkout" || l[naming.LabelCluster] != "" {
			t.Errorf("it is labelled %v", l)
		}
		for name, spoil := range map[string]func(*corev1.Secret){
			"damaged": func(s *corev1.Secret) { s.Data["tls.key"] = []byte("x") },
			"emptied": func(s *corev1.Secret) { s.Data = nil },
			"renamed": func(s *corev1.Secret) { s.Labels["quorate.dev/client"] = "other" },
		} {
			secret := copyIn(w, "web").DeepCopy()
			secret.Annotations = map[string]string{"example.com/reload": "yes"}
			spoil(secret)
			w.Put(corev1.SchemeGroupVersion.WithResource("secrets"), secret)
			w.Settle()
			w.UntilIdle()
			if is := copyIn(w, "web"); !sameAsSource(w, "web") || is.Annotations["example.com/reload"] != "yes" || is.Labels["quorate.dev/client"] != "checkout" {
				t.Errorf("%s it did not come back: %v", name, is)
			}
		}
		old := string(secretIn(w, "orders-client-checkout").Data["tls.crt"])
		w.MustDo(action.DeleteObject{ObjectKind: "Secret", Name: "orders-client-checkout"})
		w.Settle()
		w.UntilIdle()
		if !sameAsSource(w, "web") || !sameAsSource(w, "lab") || string(copyIn(w, "web").Data["tls.crt"]) == old {
			t.Error("a new certificate did not reach the copies")
		}
		w.MustPass()
		w.API.ClearActions()
		w.MustPass()
		if requests := w.API.Requests(); len(requests) > 0 {
			t.Errorf("requests at rest: %q", requests)
		}
		w.Commit(copiedTo("lab"))
		w.UntilIdle()
		if copyIn(w, "web") != nil || !sameAsSource(w, "lab") {
			t.Error("the namespace that left the file keeps its copy, or another lost it")
		}
		w.Commit(ofClients())
		w.UntilIdle()
		if copyIn(w, "lab") != nil || secretIn(w, "orders-client-checkout") == nil {
			t.Error("the copy of an application that left stays, or its source goes")
		}
		for name, is := range w.Contents() {
			if pod, ok := is.(*corev1.Pod); ok && before[name].(*corev1.Pod).UID != pod.UID {
				t.Errorf("%s was restarted", name)
			}
		}
	})
}

// 498: what is in the way of a copy and is not quorate's copy for this cluster is neither written nor
// deleted, whatever labels it has, and is reported; the other copies are made, and the cluster goes on.
func TestAForeignSecretIsNoCopy(t *testing.T) {
	own := map[string]string{"app.kubernetes.io/managed-by": "quorate", "quorate.dev/client-of": "orders", "quorate.dev/client-of-namespace": "shop", "quorate.dev/client": "checkout"}
	with := func(key, value string) map[string]string {
		return naming.OverlayMaps(own, map[string]string{key: value})
	}
	for name, c := range map[string]struct {
		labels map[string]string
		of     corev1.SecretType
	}{
		"without labels":                       {nil, corev1.SecretTypeTLS},
		"of another cluster":                   {with("quorate.dev/client-of", "reports"), corev1.SecretTypeTLS},
		"of a cluster in another namespace":    {with("quorate.dev/client-of-namespace", "lab"), corev1.SecretTypeTLS},
		"of a person who has quorate's label":  {with("app.kubernetes.io/managed-by", "me"), corev1.SecretTypeTLS},
		"of a cluster in that namespace":       {with("quorate.dev/cluster", "orders"), corev1.SecretTypeTLS},
		"of another type, with all the labels": {own, corev1.SecretTypeOpaque},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				w.Put(corev1.SchemeGroupVersion.WithResource("secrets"), &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Name: "orders-client-checkout", Namespace: "web", Labels: c.labels}, Type: c.of,
					Data: map[string][]byte{"tls.crt": []byte("theirs"), "tls.key": []byte("theirs")},
				})
				w.Commit(copiedTo("web", "lab"))
				w.Settle()
				w.UntilIdle()
				if !sameAsSource(w, "lab") {
					t.Error("the other copy was not made")
				}
				p, err := w.R.Plan(t.Context(), w.Wish)
				if err != nil || !strings.Contains(p.Text(), "Secret web/orders-client-checkout, the copy of an application's certificate, is not written: an object of this name exists, and it is not quorate's") {
					t.Errorf("told is %s, %v", p.Text(), err)
				}
				w.Commit(func(c *schema.EtcdCluster) { copiedTo("lab")(c); c.Spec.Version = "3.6.17" })
				w.UntilIdle()
				if is := copyIn(w, "web"); is == nil || string(is.Data["tls.key"]) != "theirs" {
					t.Errorf("it is %v", is)
				}
				if w.VersionOf("orders-0") != "3.6.17" {
					t.Error("the cluster waited for it")
				}
				for _, act := range []action.Action{action.CopyCertificate{Secret: "orders-client-checkout", Namespace: "web"}, action.DeleteCopy{Secret: "orders-client-checkout", Namespace: "web"}} {
					if err := w.Do(act); err == nil || string(copyIn(w, "web").Data["tls.key"]) != "theirs" {
						t.Errorf("an old decision, %s: %v", act, err)
					}
				}
			})
		})
	}
}

// 498: where quorate may not write, or no namespace is, the copy is tried again less and less often,
// and made when it can be; meanwhile an upgrade goes on.
func TestACopyThatIsRefusedIsTriedAgain(t *testing.T) {
	for name, refusal := range map[string]error{
		"forbidden":    forbidden(),
		"no namespace": apierrors.NewNotFound(corev1.Resource("namespaces"), "web"),
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				closed := true
				refusing(w, "web", func() error {
					if closed {
						return refusal
					}
					return nil
				})
				w.Commit(func(c *schema.EtcdCluster) { copiedTo("web", "lab")(c); c.Spec.Version = "3.6.17" })
				w.UntilIdle()
				if copyIn(w, "web") != nil || !sameAsSource(w, "lab") || w.VersionOf("orders-0") != "3.6.17" {
					t.Fatal("the cluster, or the other copy, waits")
				}
				w.API.ClearActions()
				tries := 0
				for range 60 {
					time.Sleep(time.Minute)
					w.MustPass()
					for _, r := range w.API.Requests() {
						if r == "create secrets orders-client-checkout" {
							tries++
						}
					}
				}
				if tries < 3 || tries > 10 {
					t.Errorf("in an hour it was tried %d times", tries)
				}
				if told := strings.Join(w.DrainEvents(), "\n"); strings.Count(told, "ObjectRefused Secret web/orders-client-checkout is not taken") != 1 {
					t.Errorf("told is %s", told)
				}
				closed = false
				time.Sleep(17 * time.Minute)
				w.UntilIdle()
				if !sameAsSource(w, "web") {
					t.Error("it was not made when it could be")
				}
				closed, refusal = true, forbidden()
				w.Commit(copiedTo("lab"))
				w.UntilIdle()
				p, err := w.R.Plan(t.Context(), w.Wish)
				if err != nil || copyIn(w, "web") == nil || !strings.Contains(p.Text(), "Secret web/orders-client-checkout, a copy of a certificate that is no longer wanted, is not deleted") {
					t.Errorf("told is %s, %v", p.Text(), err)
				}
			})
		})
	}
}

// 498: with the cluster its copies go, where the volumes stay, too, and one that cannot be deleted
// keeps nothing else; wanted again, both are there again.
func TestCopiesGoWithTheCluster(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(copiedTo("web", "lab"))
		w.UntilIdle()
		closed := true
		refusing(w, "lab", func() error {
			if closed {
				return forbidden()
			}
			return nil
		})
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.State = schema.StateDeleted })
		w.UntilIdle()
		if copyIn(w, "web") != nil || copyIn(w, "lab") == nil || w.Set() != nil {
			t.Error("a copy stays, or keeps the cluster")
		}
		closed = false
		time.Sleep(17 * time.Minute)
		w.UntilIdle()
		if copyIn(w, "lab") != nil {
			t.Error("it stays when it could be deleted")
		}
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.State = schema.StateRunning })
		w.UntilIdle()
		if !sameAsSource(w, "web") || !sameAsSource(w, "lab") {
			t.Error("the copies did not come back")
		}
	})
}

// 498: what carries the labels of a copy in the namespace of the cluster itself is none: neither the
// Secret of the application nor another one is deleted for that.
func TestLabelsMakeNoCopyOfTheSource(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(ofClients("checkout"))
		w.UntilIdle()
		secret := secretIn(w, "orders-client-checkout").DeepCopy()
		secret.Labels["quorate.dev/client-of"], secret.Labels["quorate.dev/client-of-namespace"] = "orders", "shop"
		other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "shop", Labels: map[string]string{
			"app.kubernetes.io/managed-by": "quorate", "quorate.dev/client-of": "orders", "quorate.dev/client-of-namespace": "shop",
		}}, Type: corev1.SecretTypeTLS}
		for _, s := range []*corev1.Secret{secret, other} {
			w.Put(corev1.SchemeGroupVersion.WithResource("secrets"), s)
		}
		w.Settle()
		w.UntilIdle()
		if is := secretIn(w, "orders-client-checkout"); is == nil || is.UID != secret.UID || secretIn(w, "x") == nil {
			t.Error("one of them was deleted")
		}
	})
}

// 499: when a change of the authorities begins, or is about to end, the copies have what clients are
// to take up before the time begins in which they may: also when the cache does not know yet.
func TestCopiesAreRefreshedBeforeTheOverlap(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(copiedTo("web", "lab", "old"))
		w.UntilIdle()
		refusing(w, "lab", forbidden)
		for _, namespace := range []string{"old"} {
			if err := w.API.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), namespace, "orders-client-checkout"); err != nil {
				t.Fatal(err)
			}
		}
		w.MustDo(action.MakeAuthorities{})
		w.Settle()
		r := w.Look().Observed.Certificates.Rotation
		if r == nil || r.Both == "" {
			t.Fatal("no change has begun")
		}
		published := false
		w.API.PrependReactor("create", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if create, ok := a.(clienttesting.CreateAction); ok && create.GetObject().(*corev1.Secret).Name == r.Both {
				published = sameAsSource(w, "web") && bytes.Count(copyIn(w, "web").Data["ca.crt"], []byte("BEGIN")) == 2
			}
			return false, nil, nil
		})
		w.MustDo(action.PublishTrust{Secret: r.Both, Bundle: state.BundleBoth})
		if !published || copyIn(w, "old") != nil || sameAsSource(w, "lab") {
			t.Errorf("the overlap begins, and the copy has both authorities: %t", published)
		}
		refusing(w, "web", func() error { return apierrors.NewTimeoutError("the store is slow", 1) })
		if err := w.API.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), "shop", r.Both); err != nil {
			t.Fatal(err)
		}
		spoilt := copyIn(w, "web").DeepCopy()
		spoilt.Data["ca.crt"] = []byte("x")
		w.Put(corev1.SchemeGroupVersion.WithResource("secrets"), spoilt)
		if err := w.Do(action.PublishTrust{Secret: r.Both, Bundle: state.BundleBoth}); !apierrors.IsTimeout(err) || secretIn(w, r.Both) != nil {
			t.Errorf("while a copy may still be written, the overlap begins: %v", err)
		}
	})
}
