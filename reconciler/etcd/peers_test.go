package etcd

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/state"
)

// 303: a member that quorate does not reach, and that the leader hears, is known to run; one
// that hangs, as on a node that has lost its power, is known not to, whatever the release.
func TestTheLeaderTellsWhomItHears(t *testing.T) {
	t.Parallel()
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		s := startEtcd(t, version, 3, false)
		all := s.round(false)
		for _, m := range all.Members {
			if m.Heard != 0 || all.HeardBy != "" {
				t.Errorf("all answer, and the leader is asked of them: %+v", all)
			}
		}
		_, far := s.leader(all)
		var near []Endpoint
		for _, e := range s.endpoints {
			if e.Member != far.Member {
				near = append(near, e)
			}
		}
		s.endpoints = near
		listen := func() state.Peers {
			t.Helper()
			before := s.round(false)
			time.Sleep(state.Listening)
			r := s.round(false)
			r.Listen(&before)
			return memberOf(t, r, far.Member).Peers
		}
		if peers := listen(); peers != state.PeersLinked {
			t.Errorf("a member out of our reach that the others see is %q", peers)
		}
		var hangs *etcdtest.Member
		for _, m := range s.Members {
			if m.Name == far.Member {
				hangs = m
			}
		}
		resume := hangs.Pause()
		for listen() != state.PeersApart { // what was on its way arrives first
			if t.Context().Err() != nil {
				t.Fatal("a member that hangs is heard")
			}
		}
		resume()
		for listen() != state.PeersLinked {
			if t.Context().Err() != nil {
				t.Fatal("a member that is back is not heard")
			}
		}
	})
}

// 303: a leader that does not say whom it hears leaves that unknown.
func TestALeaderThatDoesNotSayIsNoEvidence(t *testing.T) {
	const metrics = `# TYPE etcd_network_peer_received_bytes_total counter
etcd_network_peer_received_bytes_total{From="0"} 7
etcd_network_peer_received_bytes_total{From="a1"} 1.5e+06
etcd_network_peer_received_bytes_total_of_another_kind{From="a2"} 5
`
	for _, c := range []struct {
		name, says, by string
		want           int64
	}{
		{"it says", metrics, "a0", 1500000},
		{"it has never heard of it", `etcd_network_peer_received_bytes_total{From="a2"} 3` + "\n", "a0", 0},
		{"it says nonsense", `etcd_network_peer_received_bytes_total{From="a1"} much` + "\n", "", 0},
		{"it refuses", "", "", 0},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c.says == "" || r.URL.Path != "/metrics" {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write([]byte(c.says))
		}))
		r := state.Round{Members: []state.Member{{ID: "a0", Leader: "a0"}, {ID: "a1", Problem: "timeout"}}}
		askLeader(t.Context(), &r, []*answer{{
			client: &Conn{http: http.DefaultClient, versionURL: server.URL + "/version"},
			status: &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: 0xa0}},
		}})
		if server.Close(); r.HeardBy != c.by || r.Members[1].Heard != c.want {
			t.Errorf("%s: %q says %d, and should be %q and %d", c.name, r.HeardBy, r.Members[1].Heard, c.by, c.want)
		}
	}
	r := state.Round{Members: []state.Member{{ID: "a0"}, {ID: "a1", Problem: "timeout"}}}
	if askLeader(t.Context(), &r, nil); r.HeardBy != "" {
		t.Errorf("there is no leader, and %q says something", r.HeardBy)
	}
}
