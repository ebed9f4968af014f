package modes_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/modes"
	"github.com/quorate/quorate/schema"
)

const (
	plain = schema.TLSDisabled
	tls   = schema.TLSManaged
)

// podIn is the spec of a pod that listens in a mode, and in another one as well.
func podIn(t *testing.T, own, also schema.TLSMode) corev1.PodSpec {
	t.Helper()
	template, _, err := manifests.RenderTemplate(clustertest.Orders(func(c *schema.EtcdCluster) { c.Spec.TLS.Mode = own }), manifests.Options{Also: also})
	if err != nil {
		t.Fatal(err)
	}
	made := clustertest.Pod(t, template)
	return made.Spec
}

// wants is a cluster of which Git asks for a mode.
func wants(mode schema.TLSMode) desired.Cluster {
	return desired.Cluster{EtcdCluster: clustertest.Orders(func(c *schema.EtcdCluster) { c.Spec.TLS.Mode = mode }), Digest: "d"}
}

// 585: a cluster is read as its members are, and its certificates are those of the mode that has some.
func TestAClusterIsReadAsItsMembersAre(t *testing.T) {
	for name, c := range map[string]struct {
		own, also, git schema.TLSMode
		is, certified  schema.TLSMode
	}{
		"plain text stays":        {plain, "", plain, plain, plain},
		"TLS stays":               {tls, "", tls, tls, tls},
		"plain text, to be TLS":   {plain, "", tls, plain, tls},
		"both, plain first":       {plain, tls, tls, plain, tls},
		"both, taken back":        {plain, tls, plain, plain, tls},
		"TLS, to be plain text":   {tls, "", plain, tls, tls},
		"both, TLS first":         {tls, plain, plain, tls, tls},
		"nothing there":           {"", "", plain, plain, plain},
		"nothing there, TLS next": {"", "", tls, tls, tls},
	} {
		t.Run(name, func(t *testing.T) {
			var set *appsv1.StatefulSet
			if c.own != "" {
				set = &appsv1.StatefulSet{}
				set.Spec.Template.Spec = podIn(t, c.own, c.also)
			}
			m, is := modes.Of(wants(c.git), set, nil)
			if is.Spec.TLS.Mode != c.is || m.Certify(is).Spec.TLS.Mode != c.certified || m.Git.Mode != c.git {
				t.Errorf("it is %s with certificates of %s, and Git says %s", is.Spec.TLS.Mode, m.Certify(is).Spec.TLS.Mode, m.Git.Mode)
			}
			if same := is.Spec.TLS.Mode == c.git; same != (is.Digest == "d") {
				t.Errorf("digest %q", is.Digest)
			}
		})
	}
}

// While there is no StatefulSet, the youngest pod tells; a file with errors tells nothing.
func TestTheYoungestPodTells(t *testing.T) {
	pods := []*corev1.Pod{{Spec: podIn(t, plain, "")}, {Spec: podIn(t, plain, tls)}, {Spec: podIn(t, plain, "")}}
	for i, p := range pods {
		p.CreationTimestamp = metav1.NewTime(time.Unix(int64(i%2), 0))
	}
	if m, _ := modes.Of(wants(tls), nil, pods); m.Is.Also != tls {
		t.Errorf("%+v", m.Is)
	}
	held := wants(tls)
	held.Problems = []string{"spec.version: is missing"}
	if m, is := modes.Of(held, nil, pods); m.Is.Own != "" || is.Spec.TLS.Mode != tls {
		t.Errorf("%+v, %s", m.Is, is.Spec.TLS.Mode)
	}
}

// 585: no member of a cluster with TLS is asked in plain text, whatever its pod says of itself.
func TestWhichPodsAreAskedByTLS(t *testing.T) {
	for name, c := range map[string]struct {
		own, also, git   schema.TLSMode
		podOwn, podAlso  schema.TLSMode
		askedWithTLSOnly bool
	}{
		"TLS":                                {tls, "", tls, tls, "", true},
		"TLS, and a pod without":             {tls, "", tls, plain, "", true},
		"plain text":                         {plain, "", plain, plain, "", false},
		"both, and a pod from before":        {plain, tls, tls, plain, "", false},
		"both":                               {plain, tls, tls, plain, tls, true},
		"TLS again, and a pod that has both": {tls, "", tls, plain, tls, true},
		"plain text alone, and one of both":  {plain, "", plain, tls, plain, false},
		"both, and a pod with TLS alone":     {tls, plain, plain, tls, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.StatefulSet{}
			set.Spec.Template.Spec = podIn(t, c.own, c.also)
			m, is := modes.Of(wants(c.git), set, nil)
			if got := m.Secured(&corev1.Pod{Spec: podIn(t, c.podOwn, c.podAlso)}, m.Certify(is).EtcdCluster); got != c.askedWithTLSOnly {
				t.Errorf("asked by TLS: %t", got)
			}
		})
	}
}
