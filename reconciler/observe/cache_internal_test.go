package observe

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/quorate/quorate/reconciler/naming"
)

// 489: what others give quorate's label fills no memory with its data; what quorate reads is whole.
func TestTheCacheKeepsNoDataOfOthers(t *testing.T) {
	object := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{naming.LabelCluster: "orders"}}
	}
	secrets := map[string]bool{"orders-ca": true, "orders-peer-ca": true, "orders-server": true, "orders-client": true, "orders-peer": true, "orders-more": false, "orders": false, "shop-ca": false}
	kube := fake.NewClientset(
		&corev1.ConfigMap{ObjectMeta: object("orders-record"), Data: map[string]string{"record": "{}"}},
		&corev1.ConfigMap{ObjectMeta: object("orders-large"), Data: map[string]string{"a": "large"}, BinaryData: map[string][]byte{"b": []byte("larger")}},
	)
	for name := range secrets {
		if err := kube.Tracker().Add(&corev1.Secret{ObjectMeta: object(name), Data: map[string][]byte{"tls.key": []byte("key")}}); err != nil {
			t.Fatal(err)
		}
	}
	client := object("checkout-etcd")
	client.Labels[naming.LabelClient] = "checkout"
	certificate := map[string][]byte{"tls.key": []byte("key"), "tls.crt": bytes.Repeat([]byte("c"), 16<<10+1), "more": []byte("more")}
	if err := kube.Tracker().Add(&corev1.Secret{ObjectMeta: client, Data: certificate}); err != nil {
		t.Fatal(err)
	}
	secrets[client.Name] = true
	c := NewCache(kube, nil)
	if err := c.Start(t.Context(), func(string) {}); err != nil {
		t.Fatal(err)
	}
	all := c.parts[metav1.NamespaceAll]
	maps := map[string]bool{}
	for _, o := range all.records.GetStore().List() {
		cm, _ := o.(*corev1.ConfigMap)
		maps[cm.Name] = len(cm.Data)+len(cm.BinaryData) > 0
	}
	if len(maps) != 2 || !maps["orders-record"] || maps["orders-large"] {
		t.Errorf("of the ConfigMaps these have data: %v", maps)
	}
	if records := c.Records(); len(records) != 1 || records[0].Name != "orders-record" {
		t.Errorf("%d of them are records", len(records))
	}
	for _, o := range all.secrets.GetStore().List() {
		s, _ := o.(*corev1.Secret)
		if whole := len(s.Data) > 0; whole != secrets[s.Name] {
			t.Errorf("the data of Secret %s is kept: %t", s.Name, whole)
		}
		if s.Name == client.Name && (len(s.Data) != 1 || s.Data["tls.key"] == nil) {
			t.Errorf("of an application's Secret %d keys are kept", len(s.Data))
		}
	}
	if len(all.secrets.GetStore().List()) != len(secrets) {
		t.Error("not all Secrets are known")
	}
}
