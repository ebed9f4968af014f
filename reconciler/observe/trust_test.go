package observe_test

import (
	"bytes"
	"crypto/x509"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
)

// renewer changes Secrets as their issuer does.
type renewer struct {
	*reconcilertest.World
	secrets map[string]*corev1.Secret
}

// put has the Secrets hold these certificates, and say to trust those.
func (r renewer) put(certificates map[string]*corev1.Secret, trusted ...[]byte) {
	r.Helper()
	for name, s := range certificates {
		s, live := s.DeepCopy(), r.secrets[name]
		s.ObjectMeta = live.ObjectMeta
		if len(trusted) > 0 {
			s.Data["ca.crt"] = bytes.Join(trusted, nil)
		}
		s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "issuer", Time: &metav1.Time{Time: time.Now()}}}
		updated, err := r.API.CoreV1().Secrets("shop").Update(r.Context(), s, metav1.UpdateOptions{})
		if err != nil {
			r.Fatal(err)
		}
		r.secrets[name] = updated
	}
	time.Sleep(observe.CertificateRecheck)
}

// kept are the Secrets with what members trust.
func (r renewer) kept() (names []string) {
	r.Helper()
	list, err := r.API.CoreV1().Secrets("shop").List(r.Context(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	for _, s := range list.Items {
		if naming.IsTrust("orders", s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// mounted is the Secret with what members trust of every pod, "" for none.
func (r renewer) mounted() string {
	r.Helper()
	found := map[string]bool{}
	for _, name := range []string{"orders-0", "orders-1", "orders-2"} {
		of := ""
		for _, v := range r.Pod(name).Spec.Volumes {
			if v.Name == naming.TrustVolume {
				of = v.Secret.SecretName
			}
		}
		found[of] = true
		for mounted := range found {
			if mounted != of {
				r.Fatalf("%s mounts %q, another pod %q", name, of, mounted)
			}
		}
	}
	for of := range found {
		return of
	}
	return ""
}

// 592: the authority of another issuer changes by a bundle of both: two rolls, each when the kubelets
// had their time, and nothing restarts but by these. What is kept is what is mounted.
func TestAnotherTrustOfAnotherIssuerIsTakenUp(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		a, b := observe.NewTheirs(t, time.Now(), 10*observe.Day, nil), observe.NewTheirs(t, time.Now(), 10*observe.Day, nil)
		old, next := observe.TheirSecrets(a), observe.TheirSecrets(b)
		oldCA, nextCA := old["their-peer"].Data["ca.crt"], next["their-peer"].Data["ca.crt"]
		w.PutTheirs(old)
		r := renewer{w, maps.Clone(old)}
		w.UntilIdle()
		if kept := r.kept(); len(kept) != 1 || r.mounted() != "" {
			t.Fatalf("%q is kept, %q is mounted", kept, r.mounted())
		}
		pods := w.PodUIDs()
		w.MustPass()

		r.put(old, oldCA, nextCA)
		w.WantHold(decision.Waiting, "bundle", "the kubelets have until")
		if w.PodUIDs() != pods {
			t.Fatal("a member restarted before the kubelets had their time")
		}
		time.Sleep(state.TrustSettles)
		w.UntilIdle()
		both := certs.NamedTrust(clustertest.Orders(clustertest.NamedTLS), r.secrets).Name
		if w.PodUIDs() == pods || r.mounted() != both || !slices.Equal(r.kept(), []string{both}) {
			t.Fatalf("%q is mounted, %q kept, want %s", r.mounted(), r.kept(), both)
		}
		pods = w.PodUIDs()

		r.put(next, oldCA, nextCA)
		w.UntilIdle()
		if w.PodUIDs() != pods {
			t.Fatal("a certificate restarted a member")
		}
		r.put(next, nextCA)
		w.WantHold(decision.Waiting, "bundle", "the kubelets have until")
		time.Sleep(state.TrustSettles)
		w.UntilIdle()
		alone := certs.NamedTrust(clustertest.Orders(clustertest.NamedTLS), r.secrets).Name
		if w.PodUIDs() == pods || r.mounted() != alone || !slices.Equal(r.kept(), []string{alone}) {
			t.Fatalf("%q is mounted, %q kept, want %s", r.mounted(), r.kept(), alone)
		}
	}, clustertest.NamedTLS)
}

// 593: another authority at once is held, and nothing restarts until what was there is put back; and
// so is a bundle that is gone, until the Secrets say again what it said.
func TestAnotherAuthorityAtOnceIsHeld(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		a, b := observe.NewTheirs(t, time.Now(), 10*observe.Day, nil), observe.NewTheirs(t, time.Now(), 10*observe.Day, nil)
		old, next := observe.TheirSecrets(a), observe.TheirSecrets(b)
		oldCA, nextCA := old["their-peer"].Data["ca.crt"], next["their-peer"].Data["ca.crt"]
		w.PutTheirs(old)
		r := renewer{w, maps.Clone(old)}
		w.UntilIdle()
		pods := w.PodUIDs()
		r.put(next)
		for range 20 {
			w.WantHold(decision.Unhealthy, "trusted", "the certificate in their-server is signed by an authority that members which run do not trust")
			time.Sleep(time.Minute)
		}
		r.put(next, oldCA, nextCA) // both in ca.crt, too late: members that run have not read it
		time.Sleep(state.TrustSettles)
		w.WantHold(decision.Unhealthy, "trusted", "put back the certificate from before")
		if w.PodUIDs() != pods {
			t.Fatal("a member restarted")
		}
		r.put(old, oldCA, nextCA)
		time.Sleep(state.TrustSettles)
		w.UntilIdle()
		gone := r.mounted()
		if w.PodUIDs() == pods || gone == "" {
			t.Fatal("the bundle was not taken up")
		}
		if err := w.API.CoreV1().Secrets("shop").Delete(t.Context(), gone, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.UntilIdle()
		if !slices.Equal(r.kept(), []string{gone}) {
			t.Fatalf("%q is kept, want %s", r.kept(), gone)
		}
		r.put(old, oldCA)
		if err := w.API.CoreV1().Secrets("shop").Delete(t.Context(), gone, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		w.WantHold(decision.Unhealthy, "certificates", "the Secret "+gone+" is gone, which members mount")
	}, clustertest.NamedTLS)
}

// Of a Secret's text only certificates are kept, in no order, and each once; who is trusted is asked
// of each port's authorities.
func TestBundle(t *testing.T) {
	c := clustertest.Orders(clustertest.NamedTLS)
	a, b := observe.NewTheirs(t, time.Now(), observe.Day, nil), observe.NewTheirs(t, time.Now(), observe.Day, nil)
	secrets := observe.TheirSecrets(a)
	caA, caB := secrets["their-peer"].Data["ca.crt"], observe.TheirSecrets(b)["their-peer"].Data["ca.crt"]
	saying := func(server, peer []byte) string {
		secrets["their-server"].Data["ca.crt"], secrets["their-peer"].Data["ca.crt"] = server, peer
		if s := certs.NamedTrust(c, secrets); s != nil {
			if !certs.KeepsTrust(c, s) || strings.Contains(string(s.Data["clients.crt"])+string(s.Data["peers.crt"]), "KEY") || !*s.Immutable {
				t.Errorf("kept: %v", s)
			}
			return s.Name
		}
		return ""
	}
	one := saying(caA, caA)
	if saying(slices.Concat(caA, caB), caA) != saying(slices.Concat(caB, secrets["their-peer"].Data["tls.key"], caA, caB), caA) {
		t.Error("the order, or a key, makes another bundle")
	}
	if one == saying(caA, caB) || one == saying(caB, caA) || one == saying(slices.Concat(caA, caB), caA) {
		t.Error("other authorities make the same bundle")
	}
	if saying(nil, caA) != "" || saying([]byte("air"), caA) != "" {
		t.Error("a Secret that says nothing makes a bundle")
	}
	saying(caA, caA)
	kept := certs.NamedTrust(c, secrets)
	if refused := certs.Refused(c, secrets, kept); len(refused) > 0 {
		t.Errorf("refused: %q", refused)
	}
	for name, hosts := range map[string][]string{"their-server": observe.TheirHosts(), "their-peer": observe.TheirHosts(), "their-client": nil} {
		others := observe.TheirSecrets(a)
		others[name] = b.Issue(name, hosts, x509.ExtKeyUsageClientAuth)
		if refused := certs.Refused(c, others, kept); len(refused) != 1 || !strings.HasPrefix(refused[0], "the certificate in "+name) {
			t.Errorf("%s by another authority: %q", name, refused)
		}
	}
	forged := kept.DeepCopy()
	forged.Data["clients.crt"] = caB
	foreign := kept.DeepCopy()
	foreign.Labels = nil
	if certs.KeepsTrust(c, forged) || certs.KeepsTrust(c, foreign) {
		t.Error("a Secret that holds another thing, or is another's, is taken for a bundle")
	}
}
