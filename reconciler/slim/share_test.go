package slim_test

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"unsafe"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	"github.com/quorate/quorate/reconciler/slim"
)

// What objects share changes nothing of them, whatever they hold.
func TestSharedObjectsAreAsTheyWere(t *testing.T) {
	var sharing slim.Sharing
	share := sharing.After(nil)
	for seed := range int64(300) {
		fill := randfill.NewWithSeed(seed).NilChance(0.2).NumElements(0, 4).MaxDepth(12).Funcs(func(o *runtime.Object, c randfill.Continue) {
			*o = &metav1.Status{Message: c.String(0)}
		})
		for _, o := range []metav1.Object{
			&corev1.ConfigMap{}, &appsv1.StatefulSet{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}, &corev1.Secret{},
			&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{},
		} {
			fill.Fill(o)
			before := reflect.ValueOf(o).MethodByName("DeepCopy").Call(nil)[0].Interface()
			got, err := share(o)
			if err != nil || got != any(o) || !reflect.DeepEqual(got, before) {
				t.Fatalf("seed %d: %T has changed: %v\n%+v\n%+v", seed, o, err, got, before)
			}
		}
	}
}

// Two pods of one kind have their texts and the fields of their writers once, and what is no longer known later again.
func TestPodsShareTheirTexts(t *testing.T) {
	var sharing slim.Sharing
	share := sharing.After(slim.Pod)
	of := func(name string) *corev1.Pod {
		t.Helper()
		clone := func(text string) string { return string([]byte(text)) }
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clone("app"): clone("etcd")}}}
		p.Spec.Containers = []corev1.Container{{Image: clone("registry.example/etcd:v3.6.16"), Env: []corev1.EnvVar{{Name: clone("ETCD_NAME"), Value: name}}}}
		if _, err := share(p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	same := func(a, b string) bool { return a == b && unsafe.StringData(a) == unsafe.StringData(b) }
	first, second := of("orders-0"), of("baskets-0")
	if a, b := first.Spec.Containers[0], second.Spec.Containers[0]; !same(a.Image, b.Image) || !same(a.Env[0].Name, b.Env[0].Name) {
		t.Error("two containers hold the same texts twice")
	}
	if a, b := first.Labels["app"], second.Labels["app"]; !same(a, b) {
		t.Error("two pods hold the same label twice")
	}
	for i := range 12_000 {
		of(fmt.Sprintf("other-%0100d", i))
	}
	if a, b := of("users-0"), of("carts-0"); !same(a.Spec.Containers[0].Image, b.Spec.Containers[0].Image) || same(a.Spec.Containers[0].Image, first.Spec.Containers[0].Image) {
		t.Error("what is known is not bounded, or not known again after it was forgotten")
	}
}

func TestSetsShareTheFieldsOfTheirWriters(t *testing.T) {
	var sharing slim.Sharing
	of := func() *metav1.FieldsV1 {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "quorate", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)}}}}
		if _, err := sharing.After(nil)(set); err != nil {
			t.Fatal(err)
		}
		return set.ManagedFields[0].FieldsV1
	}
	if a, b := of(), of(); a != b {
		t.Error("two sets hold the same fields twice")
	}
}

// The data of a Secret is in no table that outlives it.
func TestSecretsShareNoData(t *testing.T) {
	var sharing slim.Sharing
	of := func() []byte {
		s := &corev1.Secret{Data: map[string][]byte{"password": []byte("correct horse")}}
		if _, err := sharing.After(nil)(s); err != nil {
			t.Fatal(err)
		}
		return s.Data["password"]
	}
	if a, b := of(), of(); &a[0] == &b[0] {
		t.Error("two Secrets share their data")
	}
}

// Informers of several kinds share at the same time.
func TestSharingBySeveralAtOnce(t *testing.T) {
	var sharing slim.Sharing
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 200 {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p-%d-%d", worker, i), Labels: map[string]string{"app": "etcd"}}}
				if _, err := sharing.After(slim.Pod)(p); err != nil || p.Labels["app"] != "etcd" {
					t.Errorf("%+v, %v", p, err)
				}
			}
		})
	}
	all.Wait()
}
