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
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

const (
	plain = schema.TLSDisabled
	tls   = schema.TLSManaged
	named = schema.TLSSecrets
)

// inMode has a cluster ask for a mode, with Secrets of another program in its file.
func inMode(mode schema.TLSMode) func(*schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) {
		c.Spec.TLS.Mode, c.Spec.TLS.Secrets = mode, schema.TLSSecretNames{Server: "their-server", Peer: "their-peer", Client: "their-client"}
	}
}

// podIn is the spec of a pod that listens in a mode, and in another one as well.
func podIn(t *testing.T, own, also schema.TLSMode) corev1.PodSpec {
	t.Helper()
	template, _, err := manifests.RenderTemplate(clustertest.Orders(inMode(own)), manifests.Options{Also: also})
	if err != nil {
		t.Fatal(err)
	}
	made := clustertest.Pod(t, template)
	return made.Spec
}

// wants is a cluster of which Git asks for a mode.
func wants(mode schema.TLSMode) desired.Cluster {
	return desired.Cluster{EtcdCluster: clustertest.Orders(inMode(mode)), Digest: "d"}
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
		"quorate's, to be theirs": {tls, "", named, tls, tls},
		"theirs, to be quorate's": {named, "", tls, named, named},
		"theirs, to be plain":     {named, "", plain, named, named},
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

// 594, 595: certificates of both issuers count while pods show those of one and Git asks for the other's,
// while any pod shows another one's, and while there is what quorate has made or members trust both.
func TestWhoseCertificatesCount(t *testing.T) {
	made := map[string]*corev1.Secret{"orders-ca": {}}
	both := &state.Rotation{Old: "a", Both: "a", New: "a", Trusts: map[string]time.Time{"a": {}, "b": {}}}
	for name, c := range map[string]struct {
		template, pod, git schema.TLSMode
		made               map[string]*corev1.Secret
		rotation           *state.Rotation
		ours, theirs, both bool
	}{
		"quorate's":                              {template: tls, pod: tls, git: tls, ours: true},
		"theirs":                                 {template: named, pod: named, git: named, theirs: true},
		"quorate's, to be theirs":                {template: tls, pod: tls, git: named, ours: true, theirs: true, both: true},
		"theirs, to be quorate's":                {template: named, pod: named, git: tls, ours: true, theirs: true, both: true},
		"quorate's, and a pod from before":       {template: tls, pod: named, git: tls, ours: true, theirs: true, both: true},
		"theirs, and what quorate had made":      {template: named, pod: named, git: named, made: made, ours: true, theirs: true, both: true},
		"quorate's, and members trust theirs":    {template: tls, pod: tls, git: tls, rotation: both, ours: true, both: true},
		"quorate's, members trust quorate's":     {template: tls, pod: tls, git: tls, rotation: &state.Rotation{Old: "a", Both: "ab", New: "b", Trusts: map[string]time.Time{"a": {}, "ab": {}, "b": {}}}, ours: true},
		"theirs, to be plain text":               {template: named, pod: named, git: plain, theirs: true},
		"plain text, to be theirs, and no pod's": {template: plain, pod: plain, git: named, theirs: true},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.StatefulSet{}
			set.Spec.Template.Spec = podIn(t, c.template, "")
			m, is := modes.Of(wants(c.git), set, []*corev1.Pod{{Spec: podIn(t, c.pod, "")}})
			certified := m.Certify(is).EtcdCluster
			ours, theirs, both := m.Has(tls, c.made, certified), m.Has(named, c.made, certified), m.Both(c.rotation, c.made, certified)
			if ours != c.ours || theirs != c.theirs || both != c.both {
				t.Errorf("quorate's %t, theirs %t, both %t", ours, theirs, both)
			}
		})
	}
}

// 594: each pod is asked with the client certificate of the issuer whose certificates it shows.
func TestAPodIsAskedByItsIssuer(t *testing.T) {
	for _, c := range []struct{ pod, certified, asked schema.TLSMode }{
		{tls, tls, tls}, {named, tls, named}, {tls, named, tls}, {plain, tls, tls}, {tls, plain, plain},
	} {
		if got := modes.Shows(&corev1.Pod{Spec: podIn(t, c.pod, "")}, wants(c.certified).EtcdCluster).Spec.TLS.Mode; got != c.asked {
			t.Errorf("a pod of %s in a cluster of %s is asked by %s, want %s", c.pod, c.certified, got, c.asked)
		}
	}
}
