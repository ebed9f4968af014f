// Package memberstest asks the real members that package etcdtest starts, by the client of package etcd.
package memberstest

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/state"
)

// endpointOf returns how a real member is dialled.
func endpointOf(m *etcdtest.Member) etcd.Endpoint {
	e := etcd.Endpoint{Member: m.Name, Host: m.Host, Address: m.Address, Incarnation: "1"}
	if m.Secure() {
		e.TLS = m.TLS
	}
	return e
}

// Round returns one round of real members.
func Round(t *testing.T, s *etcdtest.Servers, deep bool) state.Round {
	t.Helper()
	client := etcd.New()
	defer client.Forget("shop/orders")
	var endpoints []etcd.Endpoint
	for _, m := range s.Members {
		endpoints = append(endpoints, endpointOf(m))
	}
	return client.Round(t.Context(), "shop/orders", endpoints, deep)
}

// Target returns a real member under its own IDs.
func Target(t *testing.T, s *etcdtest.Servers, m *etcdtest.Member) etcd.Target {
	t.Helper()
	r := Round(t, s, false)
	i := slices.IndexFunc(r.Members, func(listed state.Member) bool { return listed.Name == m.Name })
	if i < 0 {
		t.Fatalf("no member %s in %+v", m.Name, r)
	}
	return etcd.Target{Endpoint: endpointOf(m), ClusterID: r.ClusterID, ID: r.Members[i].ID}
}
