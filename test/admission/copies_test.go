package admission

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/schema"
)

// copying is a cluster with an application that finds its certificate in other namespaces.
func copying(namespaces ...string) func(*schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) {
		c.Spec.TLS.Mode = schema.TLSManaged
		c.Spec.TLS.Clients = []schema.TLSClient{{Name: "checkout", CommonName: "checkout", SecretName: "checkout-etcd", Namespaces: namespaces}}
	}
}

// copied reports whether a namespace has what the Secret of the application holds.
func (w *world) copied(namespace string) bool {
	w.Helper()
	source, err := w.kube.CoreV1().Secrets(w.namespace).Get(w.Context(), "checkout-etcd", metav1.GetOptions{})
	w.must(err)
	is, err := w.kube.CoreV1().Secrets(namespace).Get(w.Context(), "checkout-etcd", metav1.GetOptions{})
	if err != nil {
		return false
	}
	return is.Type == corev1.SecretTypeTLS && bytes.Equal(is.Data["tls.key"], source.Data["tls.key"]) && bytes.Equal(is.Data["ca.crt"], source.Data["ca.crt"])
}

// warned are the warnings of a plan.
func (w *world) warned() string {
	w.Helper()
	p, err := w.r.Plan(w.Context(), w.wish)
	w.must(err)
	return p.Text()
}

// 498: with the rights of deploy/base, and under the policies of deploy/admission, quorate writes,
// mends and deletes copies in other namespaces. A Secret of others, and a namespace that does not exist,
// are told of, in the API server's words, and keep nothing else.
func TestCopiesUnderThePolicies(t *testing.T) {
	h := newHouse(t)
	for _, namespace := range []string{"copies-web", "copies-theirs"} {
		h.apply(object("v1", "Namespace", "", namespace, nil))
	}
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "checkout-etcd"}, Data: map[string][]byte{"tls.key": []byte("theirs")}}
	_, err := h.kube.CoreV1().Secrets("copies-theirs").Create(t.Context(), theirs, metav1.CreateOptions{})
	h.must(err)
	w := newWorldAs(t, "copies", as(quorate), copying("copies-web", "copies-theirs", "copies-none"))
	w.untilIdle()
	if !w.copied("copies-web") {
		t.Error("the copy is not what its source is")
	}
	warned := w.warned()
	for _, want := range []string{
		"Secret copies-theirs/checkout-etcd, the copy of an application's certificate, is not written: an object of this name exists, and it is not quorate's",
		`Secret copies-none/checkout-etcd, the copy of an application's certificate, is not written: copy checkout-etcd to namespace copies-none: namespaces "copies-none" not found`,
	} {
		if !strings.Contains(warned, want) {
			t.Errorf("it warns of\n%s\nand not %s", warned, want)
		}
	}
	is, err := h.kube.CoreV1().Secrets("copies-web").Get(t.Context(), "checkout-etcd", metav1.GetOptions{})
	h.must(err)
	is.Data["tls.key"] = []byte("spoilt")
	_, err = h.kube.CoreV1().Secrets("copies-web").Update(t.Context(), is, metav1.UpdateOptions{})
	h.must(err)
	h.await("the copy to be mended", func() error {
		w.passes(1)
		if !w.copied("copies-web") {
			return errors.New("it is not yet")
		}
		return nil
	}, allowed)
	w.commit(copying())
	w.untilIdle()
	if w.copied("copies-web") {
		t.Error("what is not asked for any more is there")
	}
	if is, err := h.kube.CoreV1().Secrets("copies-theirs").Get(t.Context(), "checkout-etcd", metav1.GetOptions{}); err != nil || string(is.Data["tls.key"]) != "theirs" {
		t.Errorf("theirs is %v, %v", is, err)
	}
	if refused := w.writes.refused(); len(refused) > 0 {
		t.Errorf("it may not %q", refused)
	}
}

// 498: with --namespaces a RoleBinding in each namespace is enough for copies, too. One without a
// RoleBinding, and one that --namespaces does not name, is told in words, and asked for nothing.
func TestCopiesWithARoleBindingInEachNamespace(t *testing.T) {
	const confined = "confined-copies"
	h := emptyHouse(t)
	for _, o := range deployed(t, deploy("base")) {
		if o.GetKind() == "ClusterRole" {
			h.apply(o)
		}
	}
	for _, namespace := range []string{"copies-to", "copies-unbound", "copies-far"} {
		h.apply(object("v1", "Namespace", "", namespace, nil))
	}
	h.bind("copies-to", confined, "ClusterRole", "quorate")
	w := newWorldIn(t, "copies-bound", as(confined), kube.Namespaces{"copies-bound", "copies-to", "copies-unbound"}, copying("copies-to", "copies-unbound", "copies-far"))
	h.bind("copies-bound", confined, "ClusterRole", "quorate")
	h.await("the watches of the namespace that it is let in to", func() error {
		_, err := w.r.Plan(t.Context(), w.wish)
		return err
	}, allowed)
	before := len(w.writes.refused())
	w.untilIdle()
	if !w.copied("copies-to") || w.copied("copies-unbound") || w.copied("copies-far") {
		t.Error("it is not copied to the namespace that it is bound in alone")
	}
	warned := w.warned()
	for _, want := range []string{
		"Secret copies-unbound/checkout-etcd, the copy of an application's certificate, is not written: that namespace cannot be read: ",
		"quorate needs its role in namespace copies-unbound, by a RoleBinding",
		"Secret copies-far/checkout-etcd, the copy of an application's certificate, is not written: quorate does not work in that namespace: --namespaces does not name it",
	} {
		if !strings.Contains(warned, want) {
			t.Errorf("it warns of\n%s\nand not %s", warned, want)
		}
	}
	for _, r := range w.writes.refused()[before:] {
		if strings.Contains(r, "copies-far") || strings.Contains(r, "copies-to") || !strings.HasPrefix(r, "GET ") {
			t.Errorf("it may not %s", r)
		}
	}
}
