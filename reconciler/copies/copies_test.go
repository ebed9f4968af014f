package copies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/schema"
)

// orders is a cluster with an application that has copies.
func orders() schema.EtcdCluster {
	return clustertest.Orders(func(c *schema.EtcdCluster) {
		c.Spec.TLS.Clients = []schema.TLSClient{{Name: "checkout", CommonName: "checkout", SecretName: "etcd", Namespaces: []string{"web", "lab"}}}
	})
}

// copyIn is a copy in a namespace.
func copyIn(c schema.EtcdCluster, namespace, name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: certs.CopyLabels(c)}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"tls.key": []byte("key"), "tls.crt": bytes.Repeat([]byte("c"), 16<<10+1), "more": []byte("more")},
	}
}

func named(list []*corev1.Secret) (names []string) {
	for _, s := range list {
		names = append(names, s.Namespace+"/"+s.Name)
	}
	return names
}

// 498: the copies of a cluster are known by their labels, none of another one's, and without what fills
// memory; who has a copy that changes is told.
func TestTheCacheKnowsTheCopiesOfACluster(t *testing.T) {
	c, other := orders(), orders()
	other.Metadata.Namespace = "payments"
	client := fake.NewClientset(copyIn(c, "web", "etcd"), copyIn(c, "lab", "etcd"), copyIn(other, "web", "theirs"), copyIn(c, "shop", "own"))
	cache := New(client, nil)
	var mu sync.Mutex
	told := map[string]int{}
	count := func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(told)
	}
	ctx, stop := context.WithCancel(t.Context())
	if err := cache.Start(ctx, func(key string) {
		mu.Lock()
		defer mu.Unlock()
		told[key]++
	}); err != nil {
		t.Fatal(err)
	}
	if got := named(cache.Of(c)); !slices.Equal(got, []string{"lab/etcd", "web/etcd"}) {
		t.Errorf("of shop/orders: %q", got)
	}
	if got := named(cache.Of(other)); !slices.Equal(got, []string{"web/theirs"}) {
		t.Errorf("of payments/orders: %q", got)
	}
	if data := cache.Of(c)[0].Data; len(data) != 1 || string(data["tls.key"]) != "key" {
		t.Errorf("%d keys of it are kept", len(data))
	}
	if cache.Closed("anywhere") != "" {
		t.Errorf("closed: %s", cache.Closed("anywhere"))
	}
	if err := client.CoreV1().Secrets("web").Delete(t.Context(), "theirs", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for len(cache.Of(other)) > 0 {
		time.Sleep(time.Millisecond)
	}
	for count()["payments/orders"] < 2 {
		time.Sleep(time.Millisecond)
	}
	if len(count()) != 2 || count()["shop/orders"] < 2 {
		t.Errorf("told: %v", count())
	}
	stop()
	cache.Shutdown()
	if none := (*Cache)(nil); none.Of(c) != nil || none.Closed("web") != "" {
		t.Error("without a cache something is known")
	}
}

// 498: with --namespaces nothing is read elsewhere, and a copy there, or where quorate has no role, is
// refused in words; the others are found.
func TestNamespacesThatQuorateDoesNotWorkInAreClosed(t *testing.T) {
	c := orders()
	c.Spec.TLS.Clients[0].Namespaces = []string{"web", "lab", "far"}
	client := fake.NewClientset()
	client.PrependReactor("list", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetNamespace() == "lab" {
			return true, nil, apierrors.NewForbidden(corev1.Resource("secrets"), "", errors.New("no role"))
		}
		return false, nil, nil
	})
	cache := New(client, kube.Namespaces{"shop", "web", "lab"})
	if got := cache.Closed("web"); got != "that namespace has not been read yet" {
		t.Errorf("before the first list: %q", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer func() {
		stop()
		cache.Shutdown()
	}()
	if err := cache.Start(ctx, func(string) {}); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	fights := &drift.Fights{}
	fights.Refused("shop/orders", Object("web/etcd"), "a quota", "d", now)
	f := &Finder{Cache: cache, Fights: fights, Now: func() time.Time { return now }}
	source := copyIn(c, "shop", "etcd")
	source.Labels = map[string]string{"app.kubernetes.io/name": "etcd", "app.kubernetes.io/instance": "orders", "app.kubernetes.io/managed-by": "quorate", "quorate.dev/cluster": "orders", "quorate.dev/client": "checkout"}
	secrets := map[string]*corev1.Secret{"etcd": source}
	found := f.Find(c, "d", secrets, nil)
	want := map[string]string{
		"web": "a quota",
		"lab": "that namespace cannot be read: ",
		"far": "quorate does not work in that namespace: --namespaces does not name it; quorate needs its role in namespace far, by a RoleBinding",
	}
	for _, is := range found {
		if is.Refused == nil || !strings.HasPrefix(is.Refused.Problem, want[is.Namespace]) || is.Due(now) || is.Secret != "etcd" || is.Why != "is missing" {
			t.Errorf("%+v, %+v", is, is.Refused)
		}
	}
	if len(found) != 3 {
		t.Errorf("found %+v", found)
	}
	if again := f.Find(c, "e", secrets, nil); again[0].Refused != nil || !again[0].Due(now) {
		t.Errorf("with another file it is not tried at once: %+v", again[0])
	}
	if none := (*Finder)(nil); none.Find(c, "d", secrets, nil) != nil {
		t.Error("a nil Finder finds copies")
	}
}

// 498: what a person has to change is a refusal, and what passes is none.
func TestRefusal(t *testing.T) {
	for what, c := range map[string]struct {
		err     error
		refused bool
	}{
		"no namespace":         {apierrors.NewNotFound(corev1.Resource("namespaces"), "web"), true},
		"no right":             {apierrors.NewForbidden(corev1.Resource("secrets"), "etcd", errors.New("no")), true},
		"another's Secret":     {fmt.Errorf("copy: %w", kube.ErrForeign), true},
		"a store that is slow": {apierrors.NewTimeoutError("slow", 1), false},
		"another writer":       {apierrors.NewConflict(corev1.Resource("secrets"), "etcd", errors.New("newer")), false},
		"too many requests":    {apierrors.NewTooManyRequests("later", 1), false},
	} {
		if problem, refused := Refusal(c.err); refused != c.refused || refused == (problem == "") {
			t.Errorf("%s: %q, %t", what, problem, refused)
		}
	}
}
