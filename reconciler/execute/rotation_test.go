package execute_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/handshake"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// rotates asks for other authorities, without an overlap.
func rotates(word string) func(c *schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) {
		c.Spec.TLS.Rotate, c.Spec.TLS.Overlap = word, &metav1.Duration{}
	}
}

// obliging are members that trust both authorities, and show what their Secrets hold.
func obliging(_ context.Context, q handshake.Question) (all []state.Handshake) {
	leaves := certs.Check(q.Cluster, q.ClusterDomain, q.Secrets, q.Now).Rotation.Leaves
	for _, m := range q.Members {
		all = append(all, state.Handshake{Member: m.Name, Port: "client", By: leaves[0].By}, state.Handshake{Member: m.Name, Port: "peer", By: leaves[len(leaves)-1].By})
	}
	return all
}

// trusted is what the pods mount of what members trust.
func trusted(w *reconcilertest.World) []string { return mountedAs(w, naming.TrustVolume) }

// mountedAs are the Secrets that the pods mount as a volume.
func mountedAs(w *reconcilertest.World, name string) (names []string) {
	for _, object := range w.Contents() {
		if pod, ok := object.(*corev1.Pod); ok {
			for _, volume := range pod.Spec.Volumes {
				if volume.Name == name {
					names = append(names, volume.Secret.SecretName)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// passUntil makes passes, of which some may fail, until the plan is as wanted.
func passUntil(w *reconcilertest.World, wanted func(decision.Plan) bool) {
	w.Helper()
	for range 300 {
		wait, err := w.Pass()
		if err != nil {
			wait = time.Second
		}
		p, err := w.R.Plan(w.Context(), w.Wish)
		if err != nil {
			w.Fatal(err)
		}
		if wanted(p) {
			return
		}
		time.Sleep(wait)
	}
	w.Fatalf("300 passes do not lead to what is wanted; the log says\n%s", w.Log)
}

// 563 568: authorities change by the calls that quorate makes, of which each may fail at first, and are
// taken back in the midst of another change; what nothing mounts is deleted, keys first of all.
func TestAuthoritiesChange(t *testing.T) {
	for name, flaky := range map[string]bool{"each call succeeds": false, "each call fails at first": true} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				w.R.Observer.Shake = obliging
				failed := map[string]bool{}
				w.API.PrependReactor("*", "secrets", func(a k8stesting.Action) (bool, runtime.Object, error) {
					named, ok := a.(interface{ GetName() string })
					key := a.GetVerb()
					if created, is := a.(k8stesting.CreateAction); is {
						key += created.GetObject().(*corev1.Secret).Name
					} else if ok {
						key += named.GetName()
					}
					if !flaky || !slices.Contains([]string{"create", "update", "delete"}, a.GetVerb()) || failed[key] {
						return false, nil, nil
					}
					failed[key] = true
					return true, nil, errors.New("the API server is away")
				})
				old := secretIn(w, "orders-ca")
				w.Commit(ofClients("checkout"), rotates("2026-12"))
				passUntil(w, decision.Plan.Idle)
				r := w.Look().Observed.Certificates.Rotation
				if r.Word != "2026-12" || len(r.Next) > 0 || len(r.Trusts) != 1 || !slices.Equal(trusted(w), []string{r.Old}) {
					t.Fatalf("%+v, and members mount %q", r, trusted(w))
				}
				if slices.Equal(old.Data["ca.key"], secretIn(w, "orders-ca").Data["ca.key"]) || secretIn(w, "orders-ca-next") != nil {
					t.Error("the key from before is left")
				}
				if len(r.Leaves) != 4 {
					t.Errorf("certificates: %+v", r.Leaves)
				}
				before := secretIn(w, "orders-peer-ca")
				w.Commit(rotates("2027-01"))
				passUntil(w, func(decision.Plan) bool { return w.Look().Observed.Certificates.Rotation.Leaves[0].By == state.ByNext })
				w.Commit(rotates("2026-12"))
				passUntil(w, decision.Plan.Idle)
				r = w.Look().Observed.Certificates.Rotation
				if r.Word != "2026-12" || len(r.Next) > 0 || !slices.Equal(trusted(w), []string{r.Old}) || len(r.Trusts) != 1 || !slices.Equal(before.Data["ca.key"], secretIn(w, "orders-peer-ca").Data["ca.key"]) {
					t.Errorf("taken back: %+v, and members mount %q", r, trusted(w))
				}
			})
		})
	}
}

// A step that was decided on other Secrets than there are does nothing that cannot be taken back.
func TestAuthoritiesAreNotRetiredForOthers(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.MustDo(action.MakeAuthorities{})
		if err := w.Do(action.RetireAuthorities{Keep: state.ByNext}); !errors.Is(err, state.ErrChanged) || secretIn(w, "orders-ca-next") == nil {
			t.Errorf("retired while their certificates are in use: %v", err)
		}
		if err := w.Do(action.PublishTrust{Secret: "orders-trust-000000000000"}); !errors.Is(err, state.ErrChanged) {
			t.Errorf("published what is not: %v", err)
		}
		if err := w.Do(action.SwitchCertificates{By: state.ByNext}); err == nil || !strings.Contains(err.Error(), "unknown authority") {
			t.Errorf("issued what nobody trusts: %v", err)
		}
	})
}

// 565: authorities that are lost by what a cache says, and are there, are not replaced.
func TestAuthoritiesThatACacheLacksStay(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		v := w.Look()
		v.Observed.Certificates.Rotation.Lost = []string{"orders-ca is gone"}
		if err := w.R.Executor.Execute(w.Context(), v, action.MakeAuthorities{}); !errors.Is(err, state.ErrChanged) || secretIn(w, "orders-ca-next") != nil {
			t.Errorf("made for those that are there: %v", err)
		}
	})
}

// 570: Secrets that were put back as they were before a change of the authorities are trusted by no member
// that runs. Each loads its certificate at the next handshake, so one that restarted would be alone.
func TestSecretsFromBeforeAChangeRestartNobody(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.R.Observer.Shake = obliging
		var before []*corev1.Secret
		for _, name := range []string{"orders-ca", "orders-peer-ca", "orders-server", "orders-client", "orders-peer"} {
			before = append(before, secretIn(w, name))
		}
		w.Commit(rotates("2026-12"))
		passUntil(w, decision.Plan.Idle)
		mounted, pods := trusted(w), w.PodUIDs()
		for _, s := range before {
			now := secretIn(w, s.Name).DeepCopy()
			now.Data = s.Data
			w.Put(corev1.SchemeGroupVersion.WithResource("secrets"), now)
		}
		w.Settle()
		for range 40 {
			if _, err := w.Pass(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if !slices.Equal(trusted(w), mounted) || w.PodUIDs() != pods {
			t.Errorf("members mount %q, and not %q alone", trusted(w), mounted)
		}
		p, err := w.R.Plan(w.Context(), w.Wish)
		if err != nil || p.Hold == nil || p.Hold.Rule != "trusted" || !strings.Contains(p.Hold.String(), "the certificate in orders-peer is signed by an authority that members which run do not trust") || !strings.Contains(p.Hold.Do, "put the Secrets of its certificates and authorities back") {
			t.Errorf("%v, %v", p, err)
		}
	})
}
