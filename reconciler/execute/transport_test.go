package execute_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// inMode asks for a mode, without an overlap.
func inMode(mode schema.TLSMode) func(c *schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) {
		c.Spec.TLS.Mode, c.Spec.TLS.Overlap = mode, &metav1.Duration{}
	}
}

// 585 587 588: the mode changes by the calls that quorate makes, and back; what it decided on and is so no
// more it does not do.
func TestTheModeChanges(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		if err := w.Do(action.MoveMember{Member: "orders-0", MemberID: "a0", URLs: []string{"http://orders-0:2380"}}); !errors.Is(err, state.ErrChanged) || len(w.Etcd.PeerURLs) > 0 {
			t.Errorf("moved without a change of the mode: %v", err)
		}
		for _, to := range []struct {
			mode schema.TLSMode
			url  string
		}{
			{schema.TLSDisabled, "http://orders-1.orders-peers.shop.svc:2380"},
			{schema.TLSManaged, "https://orders-1.orders-peers.shop.svc:2380"},
		} {
			w.Commit(inMode(to.mode))
			passUntil(w, decision.Plan.Idle)
			v := w.Look()
			if got := v.Observed.Transport; got.Own != to.mode || got.Also != "" {
				t.Errorf("members listen to %+v, not to %s", got, to.mode)
			}
			if got := w.Etcd.PeerURLs["a1"]; !slices.Equal(got, []string{to.url}) {
				t.Errorf("orders-1 is listed at %q, not at %s", got, to.url)
			}
			if !maps.EqualFunc(v.Record.PeerURLs, w.Etcd.PeerURLs, slices.Equal) {
				t.Errorf("recorded at %q, listed at %q", v.Record.PeerURLs, w.Etcd.PeerURLs)
			}
			for _, e := range v.Endpoints {
				if (e.TLS != nil) != (to.mode == schema.TLSManaged) {
					t.Errorf("%s is asked by TLS: %t, in mode %s", e.Member, e.TLS != nil, to.mode)
				}
			}
		}
	})
}
