package branches

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/sources"
)

const orders = "kind: EtcdCluster\nmetadata: {name: orders, namespace: shop}\n"

// Branches are read while somebody looks, at most once in an interval, and not at all while nobody
// does; what was read before counts for nothing then.
func TestBranchesAreReadWhileSomebodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := cmdtest.NewRepository(t)
		r.Git("checkout", "--quiet", "-b", "quorate/status")
		date := func() { t.Setenv("GIT_COMMITTER_DATE", time.Now().Format(time.RFC3339)) }
		date()
		r.Commit("clusters/shop/orders.yaml", orders)
		repository, err := sources.New(sources.Config{URL: r.Dir, Branch: "quorate/status"})
		if err != nil {
			t.Fatal(err)
		}
		l := NewLatest(&Reader{Repository: repository, Prefix: "quorate/status"})
		if v := l.Look(); v.Problem != "the status branches have not been read yet" || len(v.Branches) != 0 || !v.Read.IsZero() {
			t.Errorf("before the first read it is %+v", v)
		}
		go l.Run(t.Context())
		first := l.Look() // it waits for the first read
		if first.Problem != "" || len(first.Branches) != 1 || first.Branches[0].Doubt != "" || len(first.Branches[0].Statuses) != 1 {
			t.Fatalf("the first look is %+v", first)
		}
		back := r.Away()
		time.Sleep(30 * time.Second)
		if v := l.Look(); v != first {
			t.Errorf("within the interval it is %+v", v)
		}
		time.Sleep(31 * time.Second)
		synctest.Wait()
		failed := l.Look()
		if !strings.Contains(failed.Problem, "fetch the branches quorate/status* of") || !failed.Read.Equal(first.Read) || failed.Branches[0].Doubt != "" {
			t.Errorf("without the repository it is %+v", failed)
		}
		back()
		time.Sleep(61 * time.Second)
		synctest.Wait()
		good := l.Look()
		if good.Problem != "" || !good.Read.After(first.Read) {
			t.Errorf("with the repository it is %+v", good)
		}

		time.Sleep(2 * time.Minute) // the read that the last look has asked for
		synctest.Wait()
		r.Away()
		time.Sleep(5 * time.Hour)
		l.mu.Lock()
		quiet := l.view
		l.mu.Unlock()
		if quiet.Problem != "" || time.Since(quiet.Read) < 5*time.Hour {
			t.Errorf("it was read while nobody looked: %+v", quiet)
		}
		if v := l.Look(); v.Problem == "" || !strings.Contains(v.Branches[0].Doubt, "last read at") {
			t.Errorf("what was read hours ago is shown as it was: %+v", v)
		}
	})
}

// What has become old since it was read is doubted without another read.
func TestABranchBecomesOld(t *testing.T) {
	now := time.Now()
	l := NewLatest(&Reader{kept: map[string]*kept{"quorate/status": {Branch: Branch{Name: "quorate/status", Written: now.Add(-2*time.Hour + 50*time.Millisecond)}, heartbeat: time.Hour}}})
	l.note(nil)
	first := l.Look()
	for first == l.Look() {
		time.Sleep(time.Millisecond)
	}
	if second := l.Look(); first.Branches[0].Doubt != "" || !strings.Contains(second.Branches[0].Doubt, "it does not run") || second != l.Look() {
		t.Errorf("it is %+v", second)
	}
}
