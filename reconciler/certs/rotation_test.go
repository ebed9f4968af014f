package certs

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// rotating is a cluster with an application, and its Secrets.
func rotating(t *testing.T) (schema.EtcdCluster, map[string]*corev1.Secret) {
	t.Helper()
	c := clusterForCertificates()
	c.Spec.TLS.Clients = []schema.TLSClient{{Name: "checkout", CommonName: "checkout"}}
	all, _ := issueCertificates(t, c, nil, certificateEpoch)
	app, err := IssueClient(c, "orders-client-checkout", all, certificateEpoch)
	if err != nil {
		t.Fatal(err)
	}
	all[app.Name] = app
	return c, all
}

// next adds the next authorities, as a word asks for them.
func next(t *testing.T, c *schema.EtcdCluster, all map[string]*corev1.Secret, word string, now time.Time) {
	t.Helper()
	c.Spec.TLS.Rotate = word
	made, err := NextAuthorities(*c, "cluster.local", all, now)
	if err != nil {
		t.Fatal(err)
	}
	put(all, made...)
}

func put(all map[string]*corev1.Secret, secrets ...*corev1.Secret) {
	for _, s := range secrets {
		all[s.Name] = s
	}
}

// signers are who has signed each certificate, in the order of the Secrets' names.
func signers(r *state.Rotation) (found []state.Signer) {
	for _, l := range r.Leaves {
		found = append(found, l.By)
	}
	return slices.Compact(found)
}

// 563: an authority carries the word that it was asked for by, is another than the one before by
// name, number and key, and takes its place at the end, with all certificates, an application's too.
func TestAuthoritiesTakeThePlaceOfOthers(t *testing.T) {
	c, all := rotating(t)
	next(t, &c, all, "2026-12", certificateEpoch)
	r := Check(c, "cluster.local", all, certificateEpoch).Rotation
	if r.Word != "" || r.NextWord != "2026-12" || len(r.Absent) > 0 || !slices.Equal(signers(r), []state.Signer{state.ByPresent}) || len(r.Leaves) != 4 {
		t.Fatalf("%+v", r)
	}
	if again, err := NextAuthorities(c, "cluster.local", all, certificateEpoch); err != nil || len(again) > 0 {
		t.Errorf("made once more: %d, %v", len(again), err)
	}
	if _, err := IssueBy(c, "cluster.local", all, state.ByNext, certificateEpoch); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("certificates that their holders do not trust: %v", err)
	}
	put(all, Bundles(c, "cluster.local", all, state.BundleBoth)...)
	issued, err := IssueBy(c, "cluster.local", all, state.ByNext, certificateEpoch)
	if err != nil || len(issued) != 4 {
		t.Fatalf("issued %d: %v", len(issued), err)
	}
	put(all, issued...)
	if status := Check(c, "cluster.local", all, certificateEpoch); len(status.Problems) > 0 || !slices.Equal(signers(status.Rotation), []state.Signer{state.ByNext}) {
		t.Errorf("%q %+v", status.Problems, status.Rotation)
	}
	// What is renewed meanwhile keeps its authority, and what it trusts.
	renewed, err := Reissue(c, "cluster.local", "orders-server", all, certificateEpoch)
	if err != nil {
		t.Fatal(err)
	}
	put(all, renewed)
	if r := Check(c, "cluster.local", all, certificateEpoch).Rotation; !slices.Equal(signers(r), []state.Signer{state.ByNext}) || r.Leaves[0].Bundle != state.BundleBoth {
		t.Errorf("%+v", r.Leaves)
	}
	update, create, remove := Retire(c, "cluster.local", all, state.ByNext)
	put(all, slices.Concat(update, create)...)
	// Killed before the last calls, it is the same as after them, for all but the names.
	if r := Check(c, "cluster.local", all, certificateEpoch).Rotation; r.Word != "2026-12" || !slices.Equal(signers(r), []state.Signer{state.ByBoth}) || r.New != r.Old {
		t.Errorf("half done: %+v", r)
	}
	for _, name := range remove {
		delete(all, name)
	}
	status := Check(c, "cluster.local", all, certificateEpoch)
	if r := status.Rotation; len(status.Problems)+len(status.Missing)+len(r.Next) > 0 || r.Word != "2026-12" || len(all) != 6 {
		t.Errorf("%q %q %+v, %d Secrets", status.Problems, status.Missing, r, len(all))
	}
	for _, l := range status.Rotation.Leaves {
		if l.Bundle != state.BundleOld {
			t.Errorf("%s still trusts another authority", l.Secret)
		}
	}
}

// 565: an authority whose key is gone, or whose Secret is, asks for another one, and is trusted by what
// its certificate was.
func TestALostAuthorityAsksForAnother(t *testing.T) {
	for name, lose := range map[string]func(map[string]*corev1.Secret){
		"its Secret is gone":       func(all map[string]*corev1.Secret) { delete(all, "orders-ca") },
		"its key is gone":          func(all map[string]*corev1.Secret) { delete(all["orders-ca"].Data, authorityKeyKey) },
		"its Secret holds nothing": func(all map[string]*corev1.Secret) { all["orders-ca"].Data = nil },
		"it has another one's key": func(all map[string]*corev1.Secret) {
			all["orders-ca"].Data["ca.key"] = all["orders-peer-ca"].Data["ca.key"]
		},
		"its certificate is a leaf": func(all map[string]*corev1.Secret) {
			all["orders-ca"].Data["ca.crt"] = all["orders-server"].Data["tls.crt"]
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, all := rotating(t)
			before := Check(c, "cluster.local", all, certificateEpoch).Rotation.Old
			lose(all)
			status := Check(c, "cluster.local", all, certificateEpoch.Add(300*24*time.Hour))
			if r := status.Rotation; len(status.Problems)+len(status.Missing) > 0 || len(r.Lost) != 1 || !strings.HasPrefix(r.Lost[0], "orders-ca ") || r.Old != before {
				t.Fatalf("problems %q, missing %q, %+v", status.Problems, status.Missing, r)
			}
			if !slices.Equal(status.Due, []string{"orders-peer"}) {
				t.Errorf("due: %q", status.Due)
			}
			next(t, &c, all, "", certificateEpoch)
			put(all, Bundles(c, "cluster.local", all, state.BundleBoth)...)
			issued, err := IssueBy(c, "cluster.local", all, state.ByNext, certificateEpoch)
			if err != nil {
				t.Fatal(err)
			}
			put(all, issued...)
			update, create, remove := Retire(c, "cluster.local", all, state.ByNext)
			put(all, slices.Concat(update, create)...)
			for _, name := range remove {
				delete(all, name)
			}
			if status := Check(c, "cluster.local", all, certificateEpoch); len(status.Problems)+len(status.Missing)+len(status.Rotation.Lost) > 0 {
				t.Errorf("at the end: %q %q %q", status.Problems, status.Missing, status.Rotation.Lost)
			}
		})
	}
}

// 560: what members trust is named by its content: another Secret of that name is not taken for it.
func TestTrustIsNamedByItsContent(t *testing.T) {
	c, all := rotating(t)
	next(t, &c, all, "2026-12", certificateEpoch)
	r := Check(c, "cluster.local", all, certificateEpoch).Rotation
	trusted, err := Trust(c, "cluster.local", all, r.Both)
	if err != nil || trusted.Name != r.Both || trusted.Immutable == nil || !*trusted.Immutable {
		t.Fatalf("%+v %v", trusted, err)
	}
	if _, err := Trust(c, "cluster.local", all, "orders-trust-000000000000"); err == nil {
		t.Error("a Secret of any name is made")
	}
	for _, change := range []func(*corev1.Secret){
		func(*corev1.Secret) {},
		func(s *corev1.Secret) { s.Data["clients.crt"] = s.Data["peers.crt"] },
		func(s *corev1.Secret) { s.Data = nil },
		func(s *corev1.Secret) { s.Labels["quorate.dev/cluster"] = "baskets" },
	} {
		secrets, s := maps.Clone(all), trusted.DeepCopy()
		change(s)
		put(secrets, s)
		_, good := Check(c, "cluster.local", secrets, certificateEpoch).Rotation.Trusts[r.Both]
		if same := s.Labels["quorate.dev/cluster"] == "orders" && len(s.Data) == 2 && string(s.Data["clients.crt"]) != string(s.Data["peers.crt"]); good != same {
			t.Errorf("%v is taken for what members trust: %v", slices.Sorted(maps.Keys(s.Data)), good)
		}
	}
}

// 145: lives are those of the file: what lives longer than it says is issued again.
func TestLivesAreThoseOfTheFile(t *testing.T) {
	c, all := rotating(t)
	c.Spec.TLS.Lifetimes.Certificate = &metav1.Duration{Duration: time.Hour}
	status := Check(c, "cluster.local", all, certificateEpoch)
	if len(status.Due) != 3 {
		t.Fatalf("due: %q", status.Due)
	}
	for _, name := range status.Due {
		issued, err := Reissue(c, "cluster.local", name, all, certificateEpoch)
		if err != nil {
			t.Fatal(err)
		}
		put(all, issued)
	}
	if status := Check(c, "cluster.local", all, certificateEpoch); len(status.Due) > 0 || !status.NotAfter.Equal(certificateEpoch.Add(time.Hour)) {
		t.Errorf("due: %q, until %s", status.Due, status.NotAfter)
	}
}
