package restore

import (
	"strconv"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.uber.org/zap"

	"github.com/quorate/quorate/reconciler/restore/identity"
)

// TestIdentityMatchesEtcd compares the IDs with those of etcd's own code, for which package identity stands in.
func TestIdentityMatchesEtcd(t *testing.T) {
	for i := range 200 {
		token := "orders-" + strconv.Itoa(i)
		name := "orders-" + strconv.Itoa(i%5)
		for _, url := range []string{
			"https://" + name + ".orders-peers.shop.svc:2380", "http://127.0.0.1:" + strconv.Itoa(10000+i),
			"https://[2001:db8::1]:2380",
		} {
			urls, err := types.NewURLsMap(name + "=" + url)
			if err != nil {
				t.Fatal(err)
			}
			want, err := membership.NewClusterFromURLsMap(zap.NewNop(), token, urls)
			if err != nil {
				t.Fatal(err)
			}
			cluster, member, err := identity.Of(token, name, url)
			wantCluster, wantMember := hex(want.ID()), hex(want.MemberByName(name).ID)
			if err != nil || cluster != wantCluster || member != wantMember {
				t.Errorf("%s %s %s: %s %s, %v, want %s %s", token, name, url, cluster, member, err, wantCluster, wantMember)
			}
		}
	}
}

// TestIdentityFollowsTheToken requires other IDs for each incarnation of a cluster.
func TestIdentityFollowsTheToken(t *testing.T) {
	cluster, id, err := identity.Of("new", member, peer)
	if err != nil || cluster == "" || id == "" || cluster == id {
		t.Fatalf("cluster %q, member %q: %v", cluster, id, err)
	}
	other, _, err := identity.Of("newer", member, peer)
	if err != nil || other == cluster {
		t.Errorf("another token has the same cluster ID %q: %v", other, err)
	}
	if _, _, err := identity.Of("new", member, "no URL"); err == nil {
		t.Error("no error for a peer URL that is none")
	}
}

func hex(id types.ID) string { return strconv.FormatUint(uint64(id), 16) }
