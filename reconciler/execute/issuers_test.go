package execute_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// issuedBy asks for the certificates of an issuer, without an overlap. The other program's Secrets stay
// named while quorate's are asked for.
func issuedBy(mode schema.TLSMode) func(*schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) {
		clustertest.NamedTLS(c)
		c.Spec.TLS.Mode, c.Spec.TLS.Overlap = mode, &metav1.Duration{}
		c.Spec.TLS.Clients = []schema.TLSClient{{Name: "checkout", CommonName: "checkout"}}
	}
}

// theirCertificates puts Secrets of another program, which are good, into the cluster's namespace.
func theirCertificates(w *reconcilertest.World) map[string]*corev1.Secret {
	w.Helper()
	c := clustertest.Orders()
	made, err := certs.Issue(c, "cluster.local", nil, w.R.Observer.Now())
	if err != nil {
		w.Fatal(err)
	}
	theirs := map[string]*corev1.Secret{}
	for _, s := range made {
		if name, is := strings.CutPrefix(s.Name, "orders-"); is && !strings.HasSuffix(name, "ca") {
			theirs["their-"+name] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "their-" + name, Namespace: "shop"}, Type: s.Type, Data: s.Data}
		}
	}
	w.PutTheirs(theirs)
	return theirs
}

// shownByPods are the Secrets of servers that the pods mount.
func shownByPods(w *reconcilertest.World) []string { return mountedAs(w, naming.ServerTLSVolume) }

// 594 595 597: another program takes over from quorate, and quorate from it, by the calls that quorate makes,
// of which each may fail at first; a change is taken back in the midst. What nothing mounts is deleted, keys
// with it; the other program's Secrets are never written.
func TestIssuersChange(t *testing.T) {
	for name, flaky := range map[string]bool{"each call succeeds": false, "each call fails at first": true} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				theirs := theirCertificates(w)
				password := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "orders-root", Namespace: "shop", Labels: naming.ObjectLabels(clustertest.Orders())}}
				if _, err := w.API.CoreV1().Secrets("shop").Create(t.Context(), password, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				failed := map[string]bool{}
				w.API.PrependReactor("*", "secrets", func(a k8stesting.Action) (bool, runtime.Object, error) {
					key := a.GetVerb()
					if created, is := a.(k8stesting.CreateAction); is {
						key += created.GetObject().(*corev1.Secret).Name
					} else if named, ok := a.(interface{ GetName() string }); ok {
						key += named.GetName()
					}
					if !flaky || !slices.Contains([]string{"create", "update", "delete"}, a.GetVerb()) || failed[key] {
						return false, nil, nil
					}
					failed[key] = true
					return true, nil, errors.New("the API server is away")
				})
				w.Commit(issuedBy(schema.TLSSecrets))
				passUntil(w, func(decision.Plan) bool { return slices.Contains(shownByPods(w), "their-server") })
				if n := strings.Count(string(secretIn(w, "orders-client-checkout").Data["ca.crt"]), "BEGIN"); n != 2 {
					t.Errorf("an application trusts %d authorities while members show certificates of two", n)
				}
				passUntil(w, decision.Plan.Idle)
				if got := shownByPods(w); !slices.Equal(got, []string{"their-server"}) {
					t.Fatalf("members show %q", got)
				}
				c := clustertest.Orders(clustertest.NamedTLS)
				if alone := certs.NamedTrust(c, theirs).Name; !slices.Equal(trusted(w), []string{alone}) {
					t.Errorf("members trust %q, want %q", trusted(w), alone)
				}
				for _, name := range []string{"orders-ca", "orders-peer-ca", "orders-server", "orders-peer", "orders-client"} {
					if secretIn(w, name) != nil {
						t.Errorf("%s is left", name)
					}
				}

				if secretIn(w, "orders-root") == nil {
					t.Error("the password of root was deleted with the certificates")
				}

				w.Commit(issuedBy(schema.TLSManaged))
				passUntil(w, func(decision.Plan) bool { return slices.Contains(shownByPods(w), "orders-server") })
				if got := shownByPods(w); !slices.Equal(got, []string{"orders-server", "their-server"}) {
					t.Errorf("in the midst of a roll members show %q", got)
				}
				w.Commit(issuedBy(schema.TLSSecrets))
				passUntil(w, decision.Plan.Idle)
				if got := shownByPods(w); !slices.Equal(got, []string{"their-server"}) || secretIn(w, "orders-ca") != nil {
					t.Errorf("taken back: members show %q", got)
				}

				w.Commit(issuedBy(schema.TLSManaged))
				passUntil(w, decision.Plan.Idle)
				r := w.Look().Observed.Certificates.Rotation
				if got := shownByPods(w); !slices.Equal(got, []string{"orders-server"}) || !slices.Equal(trusted(w), []string{r.Old}) || len(r.Trusts) != 1 {
					t.Errorf("members show %q and trust %q, of %v", got, trusted(w), r.Trusts)
				}
				for name, s := range theirs {
					if is := secretIn(w, name); is == nil || is.ResourceVersion != s.ResourceVersion {
						t.Errorf("the other program's %s was written", name)
					}
				}
				if n := strings.Count(string(secretIn(w, "orders-client").Data["ca.crt"]), "BEGIN"); n != 1 {
					t.Errorf("quorate trusts %d authorities", n)
				}
			})
		})
	}
}

// 594: certificates of the other program that are not good change nothing, and the hold names what is wrong.
func TestIssuersDoNotChangeForBadCertificates(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(issuedBy(schema.TLSSecrets))
		held := ""
		passUntil(w, func(p decision.Plan) bool {
			if p.Hold != nil {
				held = p.Hold.String()
			}
			return strings.Contains(held, "their-")
		})
		if got := held; !strings.Contains(got, "their-server does not exist") || len(trusted(w)) > 0 {
			t.Errorf("%s; members trust %q", got, trusted(w))
		}
	})
}

// 598: a step that was decided on other Secrets than there are, or on other pods, does nothing.
func TestIssuersAreNotRetiredForOthers(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		theirCertificates(w)
		w.Commit(issuedBy(schema.TLSSecrets))
		if err := w.Do(action.PublishTrust{Secret: "orders-trust-000000000000", Bundle: state.BundleIssuers}); !errors.Is(err, state.ErrChanged) {
			t.Errorf("published what is not: %v", err)
		}
		if err := w.Do(action.RetireAuthorities{Keep: state.ByOther}); !errors.Is(err, state.ErrChanged) || secretIn(w, "orders-ca") == nil {
			t.Errorf("retired what members show: %v", err)
		}
	})
}
