package branches_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/branches"
	"github.com/quorate/quorate/cmd/quorate/internal/branches/branchestest"
	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// newReader reads the status branches of a repository.
func newReader(r *cmdtest.Repository, limits sources.Limits) *branches.Reader {
	r.Helper()
	repository, err := sources.New(sources.Config{URL: r.Dir, Branch: "quorate/status", Limits: limits})
	if err != nil {
		r.Fatal(err)
	}
	return &branches.Reader{Repository: repository, Prefix: "quorate/status"}
}

// newRepository has a branch to follow, on which nothing is read here.
func newRepository(t *testing.T) *cmdtest.Repository {
	t.Helper()
	r := cmdtest.NewRepository(t)
	r.Commit("clusters/none.yaml", "")
	return r
}

// read reads the branches, and returns them as they are now.
func read(t *testing.T, from *branches.Reader) []branches.Branch {
	t.Helper()
	if err := from.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	return from.Branches(time.Now(), time.Now())
}

// Two Kubernetes clusters may have clusters of one name; the own branch is not read; a branch that
// has not moved is not read again, and one that is gone is gone.
func TestBranchesOfSeveralKubernetesClusters(t *testing.T) {
	r := newRepository(t)
	branchestest.Write(r, "quorate/status-eu", cmdtest.Ready("orders"), cmdtest.Ready("carts"))
	branchestest.Write(r, "quorate/status-us", cmdtest.Cluster("orders", schema.PhaseStalled, "QuorumLost", "two of three members are gone"))
	branchestest.Write(r, "quorate/status-here", cmdtest.Ready("orders"))
	reader := newReader(r, sources.Limits{})
	reader.Own = "quorate/status-here"
	first := read(t, reader)
	if len(first) != 2 || first[0].Name != "quorate/status-eu" || len(first[0].Statuses) != 2 || first[0].Statuses[0].Metadata.Name != "carts" || first[1].Name != "quorate/status-us" {
		t.Fatalf("read %+v", first)
	}
	if phase, why := first[1].Statuses[0].Phase(); phase != schema.PhaseStalled || why.Message != "two of three members are gone" || first[1].Doubt != "" || first[1].Written.IsZero() || first[1].Commit == "" {
		t.Errorf("read %+v", first[1])
	}
	branchestest.Write(r, "quorate/status-us", cmdtest.Ready("orders"))
	second := read(t, reader)
	if &second[0].Statuses[0] != &first[0].Statuses[0] {
		t.Error("a branch that has not moved was read again")
	}
	if phase, _ := second[1].Statuses[0].Phase(); phase != schema.PhaseReady {
		t.Errorf("a branch that has moved was not: %+v", second[1])
	}
	r.Git("branch", "--quiet", "-D", "quorate/status-eu")
	if third := read(t, reader); len(third) != 1 || third[0].Name != "quorate/status-us" {
		t.Errorf("a branch that is gone is still there: %+v", third)
	}
}

// What a branch says is doubted when nobody has written it for too long, when it is dated in the
// future, and when it was not read for a while; then nothing in it is healthy.
func TestABranchWithoutNewsIsDoubted(t *testing.T) {
	r := newRepository(t)
	orders := cmdtest.Ready("orders")
	orders.Status.Cluster.Members = []schema.MemberStatus{{Name: "orders-0", Health: schema.HealthHealthy}}
	branchestest.Write(r, "quorate/status-beating", orders)
	r.Git("checkout", "--quiet", "quorate/status-beating")
	r.Git("checkout", "--quiet", "-b", "quorate/status-silent")
	r.Commit("README.md", "") // a commit without a heartbeat
	reader := newReader(r, sources.Limits{})
	written := read(t, reader)[0].Written
	for _, tc := range []struct {
		name           string
		age, unread    time.Duration
		beating, quiet string
	}{
		{"new", 0, 0, "", ""},
		{"quiet", 119 * time.Minute, 0, "", ""},
		{"gone", 121 * time.Minute, 0, "its daemon writes every 1h0m0s at least: it does not run, or cannot write the branch", ""},
		{"a day old", 25 * time.Hour, 0, "it does not run", "give it --status-heartbeat"},
		{"another clock", -9 * time.Minute, 0, "", ""},
		{"a wrong clock", -11 * time.Minute, 0, "later than now: check the clocks", "later than now"},
		{"read a while ago", 0, 11 * time.Minute, "the repository was last read at 20", "last read at"},
	} {
		now := written.Add(tc.age)
		list := reader.Branches(now, now.Add(-tc.unread))
		for i, want := range []string{tc.beating, tc.quiet} {
			b := list[i]
			if (b.Doubt == "") != (want == "") || !strings.Contains(b.Doubt, want) {
				t.Errorf("%s: branch %s: %q, want %q", tc.name, b.Name, b.Doubt, want)
			}
			s := b.Statuses[0]
			phase, why := s.Phase()
			c := s.Status.Cluster
			healthy := phase == schema.PhaseReady && c.Replicas.Healthy == 2 && c.Members[0].Health == schema.HealthHealthy
			unknown := phase == schema.PhaseUnknown && c.Replicas.Healthy == 0 && c.Members[0].Health == schema.HealthUnknown &&
				why.Reason == "NoNews" && why.Message == b.Doubt+"; the last news was Ready: the cluster is what Git says"
			if healthy != (want == "") || unknown != (want != "") {
				t.Errorf("%s: branch %s shows %+v", tc.name, b.Name, s.Status)
			}
		}
	}
}

// A branch that cannot be read any more is doubted, keeps what it said, and hides no other.
func TestABranchThatCannotBeReadIsDoubted(t *testing.T) {
	for name, tc := range map[string]struct {
		limits sources.Limits
		most   int
		says   string
	}{
		"too large":    {sources.Limits{Files: 1}, 0, "the branch cannot be read: fetch the branch quorate/status-eu of"},
		"too much":     {sources.Limits{}, 2, "it holds 2 objects, and the status branches together more than the 2 that are kept: quorate status --all shows them"},
		"large enough": {sources.Limits{Files: 2}, 3, ""},
	} {
		r := newRepository(t)
		branchestest.Write(r, "quorate/status-eu", cmdtest.Ready("orders"))
		branchestest.Write(r, "quorate/status-us", cmdtest.Ready("orders"))
		reader := newReader(r, tc.limits)
		reader.Most = tc.most
		before := read(t, reader)
		if before[0].Doubt != "" || before[1].Doubt != "" {
			t.Fatalf("%s: %q, %q", name, before[0].Doubt, before[1].Doubt)
		}
		branchestest.Write(r, "quorate/status-eu", cmdtest.Ready("orders"), cmdtest.Ready("carts"))
		for range 2 {
			list := read(t, reader)
			if phase, _ := list[1].Statuses[0].Phase(); phase != schema.PhaseReady {
				t.Errorf("%s: the other branch is %s", name, phase)
			}
			phase, _ := list[0].Statuses[0].Phase()
			if !strings.Contains(list[0].Doubt, tc.says) || (tc.says == "") != (phase == schema.PhaseReady) || (tc.says == "") != (len(list[0].Statuses) == 2) {
				t.Errorf("%s: %+v", name, list[0])
			}
		}
	}
}

// A branch that cannot be read is tried again after ever longer pauses, whatever is at its head.
func TestABranchThatCannotBeReadIsTriedAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRepository(t)
		branchestest.Write(r, "quorate/status", cmdtest.Ready("orders"), cmdtest.Ready("carts"))
		reader := newReader(r, sources.Limits{Files: 1})
		bad := func() bool { return strings.Contains(read(t, reader)[0].Doubt, "cannot be read") }
		if !bad() {
			t.Fatal("it is read")
		}
		branchestest.Write(r, "quorate/status", cmdtest.Ready("orders"))
		time.Sleep(29 * time.Second)
		if !bad() {
			t.Error("it was tried again at once")
		}
		time.Sleep(2 * time.Second)
		if bad() {
			t.Error("it was not tried again")
		}
	})
}

// A heartbeat that a branch claims keeps it from being doubted for two days at most.
func TestALongHeartbeatIsNotBelieved(t *testing.T) {
	r := newRepository(t)
	r.Git("commit", "--quiet", "--allow-empty", "-m", "status\n\nQuorate-Heartbeat: 9000h\nQuorate-Status-Of: one")
	r.Git("branch", "quorate/status")
	reader := newReader(r, sources.Limits{})
	written := read(t, reader)[0].Written
	for age, doubted := range map[time.Duration]bool{47 * time.Hour: false, 49 * time.Hour: true} {
		now := written.Add(age)
		if b := reader.Branches(now, now)[0]; (b.Doubt != "") != doubted {
			t.Errorf("after %s: %q", age, b.Doubt)
		}
	}
}

// A file that is no status, or that of another object, is named and not shown.
func TestWhatIsNoStatusIsNamed(t *testing.T) {
	r := newRepository(t)
	branchestest.Write(r, "quorate/status", cmdtest.Ready("orders"))
	r.Git("checkout", "--quiet", "quorate/status")
	const head = "apiVersion: status.quorate.dev/v1\n"
	bad := map[string]string{
		"clusters/shop/broken.yaml": "kind: [", "clusters/shop/empty.yaml": "", "notes.yaml": "kind: EtcdCluster\nmetadata: {name: notes, namespace: shop}\n",
		"clusters/shop/other.yaml": head + "kind: EtcdCluster\nmetadata: {name: orders, namespace: shop}\n",
		"clusters/shop/pod.yaml":   head + "kind: Pod\nmetadata: {name: pod, namespace: shop}\n",
		"clusters/Shop/a.yaml":     head + "kind: EtcdCluster\nmetadata: {name: a, namespace: Shop}\n",
		"clusters/shop/x/a.yaml":   head + "kind: EtcdCluster\nmetadata: {name: x/a, namespace: shop}\n",
	}
	for path, text := range bad {
		r.Commit(path, text)
	}
	list := read(t, newReader(r, sources.Limits{}))
	if len(list) != 1 || len(list[0].Statuses) != 1 || list[0].Statuses[0].Metadata.Name != "orders" || len(list[0].Unread) != len(bad) {
		t.Fatalf("read %+v", list)
	}
	for _, path := range list[0].Unread {
		if _, there := bad[path]; !there {
			t.Errorf("%s is told of", path)
		}
	}
}
