package certs

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// 498: which copies are to be written, and why, and which are to be deleted.
func TestCheckCopies(t *testing.T) {
	c := clusterOfClients()
	c.Spec.TLS.Clients[0].Namespaces = []string{"web", "lab"}
	all, _ := issueCertificates(t, c, nil, certificateEpoch)
	withIssuedClients(t, c, all, certificateEpoch)
	const name = "orders-client-checkout"
	copyIn := func(namespace string, change func(*corev1.Secret)) *corev1.Secret {
		made := MakeCopy(c, all[name], namespace, nil)
		if change != nil {
			change(made)
		}
		return made
	}
	missing := func(namespace string) Copy { return Copy{Secret: name, Namespace: namespace, Why: "is missing"} }
	differs := Copy{Secret: name, Namespace: "web", Why: "is not what shop/orders-client-checkout holds"}
	left := func(namespace, secret string) Copy {
		return Copy{Secret: secret, Namespace: namespace, Why: "is no longer in spec.tls.clients", Unwanted: true}
	}
	lab := copyIn("lab", nil)
	for what, is := range map[string]struct {
		change  func(c *schema.EtcdCluster, secrets map[string]*corev1.Secret)
		wanting []Wanting
		live    []*corev1.Secret
		want    []Copy
	}{
		"none is there":             {want: []Copy{missing("web"), missing("lab")}},
		"all are as they should be": {live: []*corev1.Secret{copyIn("web", nil), lab}},
		"another certificate":       {live: []*corev1.Secret{copyIn("web", func(s *corev1.Secret) { s.Data["tls.crt"] = []byte("x") }), lab}, want: []Copy{differs}},
		"another key":               {live: []*corev1.Secret{copyIn("web", func(s *corev1.Secret) { delete(s.Data, "tls.key") }), lab}, want: []Copy{differs}},
		"another authority":         {live: []*corev1.Secret{copyIn("web", func(s *corev1.Secret) { s.Data["ca.crt"] = nil }), lab}, want: []Copy{differs}},
		"of another application":    {live: []*corev1.Secret{copyIn("web", func(s *corev1.Secret) { s.Labels[naming.LabelClient] = "reports" }), lab}, want: []Copy{differs}},
		"a key of others is theirs": {live: []*corev1.Secret{copyIn("web", func(s *corev1.Secret) { s.Data["keystore.p12"] = []byte("x") }), lab}},
		"the source is due": {
			wanting: []Wanting{{Secret: name, Why: "is past two thirds of its life"}}, live: []*corev1.Secret{lab},
			want: []Copy{missing("web"), {Secret: name, Namespace: "lab", Why: "has the certificate from before"}},
		},
		"the source is to be issued first": {
			change:  func(_ *schema.EtcdCluster, secrets map[string]*corev1.Secret) { delete(secrets, name) },
			wanting: []Wanting{{Secret: name, Why: "is missing"}}, want: []Copy{missing("web"), missing("lab")},
		},
		"there is no source, and none is issued": {change: func(_ *schema.EtcdCluster, secrets map[string]*corev1.Secret) { delete(secrets, name) }, live: []*corev1.Secret{lab}},
		"the source is somebody else's": {change: func(_ *schema.EtcdCluster, secrets map[string]*corev1.Secret) {
			secrets[name] = secrets[name].DeepCopy()
			secrets[name].Labels[naming.LabelClient] = "reports"
		}, live: []*corev1.Secret{lab}},
		"a namespace that left": {live: []*corev1.Secret{copyIn("web", nil), copyIn("old", nil), lab}, want: []Copy{left("old", name)}},
		"an application that left": {
			change: func(c *schema.EtcdCluster, _ map[string]*corev1.Secret) { c.Spec.TLS.Clients = c.Spec.TLS.Clients[1:] },
			live:   []*corev1.Secret{copyIn("web", nil)}, want: []Copy{left("web", name)},
		},
		"another name": {change: func(c *schema.EtcdCluster, secrets map[string]*corev1.Secret) {
			c.Spec.TLS.Clients = []schema.TLSClient{{Name: "checkout", CommonName: "checkout", SecretName: "etcd", Namespaces: []string{"web"}}}
			secrets["etcd"] = secrets[name].DeepCopy()
			secrets["etcd"].Name = "etcd"
		}, live: []*corev1.Secret{copyIn("web", nil)}, want: []Copy{{Secret: "etcd", Namespace: "web", Why: "is missing"}, left("web", name)}},
		"a mode without authorities": {change: func(c *schema.EtcdCluster, _ map[string]*corev1.Secret) { c.Spec.TLS.Mode = schema.TLSDisabled }, live: []*corev1.Secret{lab}, want: []Copy{left("lab", name)}},
		"a cluster that goes":        {change: func(c *schema.EtcdCluster, _ map[string]*corev1.Secret) { c.Spec.State = schema.StateDeleted }, live: []*corev1.Secret{lab}, want: []Copy{left("lab", name)}},
	} {
		t.Run(what, func(t *testing.T) {
			c, secrets := c, maps.Clone(all)
			if is.change != nil {
				is.change(&c, secrets)
			}
			if got := CheckCopies(c, secrets, is.wanting, is.live); !slices.Equal(got, is.want) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// 498: a copy has three keys of its source and keeps what others add to it, and one that is right is
// not made again. Only what has all its labels, its type, and is in another namespace, is one.
func TestWhatACopyIs(t *testing.T) {
	c := clusterForCertificates()
	source := &corev1.Secret{Data: map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k"), "ca.crt": []byte("a"), "more": []byte("m")}}
	source.Name, source.Namespace, source.Labels = "etcd", "shop", map[string]string{naming.LabelClient: "checkout"}
	made := MakeCopy(c, source, "web", nil)
	if len(made.Data) != 3 || string(made.Data["tls.key"]) != "k" || made.Name != "etcd" || made.Namespace != "web" || made.Labels[naming.LabelClient] != "checkout" || !IsCopy(c, made) {
		t.Fatalf("made is %+v", made)
	}
	if again := MakeCopy(c, source, "web", made); again != nil {
		t.Errorf("it is made again: %+v", again)
	}
	made.UID, made.Annotations, made.Data["tls.key"] = "u1", map[string]string{"a": "b"}, []byte("x")
	if again := MakeCopy(c, source, "web", made); again == nil || again.UID != "u1" || again.Annotations["a"] != "b" || string(again.Data["tls.key"]) != "k" || string(made.Data["tls.key"]) != "x" {
		t.Errorf("again it is %+v", again)
	}
	for what, change := range map[string]func(*corev1.Secret){
		"without the name of the cluster":   func(s *corev1.Secret) { delete(s.Labels, naming.LabelClientOf) },
		"without the namespace of it":       func(s *corev1.Secret) { delete(s.Labels, naming.LabelClientIn) },
		"made by others":                    func(s *corev1.Secret) { s.Labels["app.kubernetes.io/managed-by"] = "Helm" },
		"of a cluster's own":                func(s *corev1.Secret) { s.Labels[naming.LabelCluster] = "" },
		"of another type":                   func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque },
		"in the namespace of the cluster":   func(s *corev1.Secret) { s.Namespace = "shop" },
		"of a cluster in another namespace": func(s *corev1.Secret) { s.Labels[naming.LabelClientIn] = "web" },
	} {
		other := MakeCopy(c, source, "web", nil)
		if change(other); IsCopy(c, other) {
			t.Errorf("%s it is a copy", what)
		}
	}
}
