package reconciler_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// silent is a stream of which no byte comes, or goes anywhere, until its ctx ends.
type silent struct{ ctx context.Context }

func (s silent) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// 372: backups of both kinds that do not move, more than there are places, hold no cluster that
// has another store: before any of them is given up, another one is backed up and rolled, and
// a third one repaired.
func TestBackupsThatHangHoldNoOtherCluster(t *testing.T) {
	stuck := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	dir := t.TempDir()
	inFleet(t, append(stuck, "users"), func(f *fleet) {
		for key, e := range f.etcds {
			if key != f.Wish.Key() && key != "shop/users" {
				e.Stream = func(ctx context.Context) io.Reader { return silent{ctx} }
			}
		}
		f.etcds["shop/users"].Database = f.Etcd.Database
		required := func(c *schema.EtcdCluster) { c.Spec.Upgrade.Backup = schema.BackupRequired }
		elsewhere := func(c *schema.EtcdCluster) {
			c.Spec.Backup.Destination.ObjectURLTemplate = "file://" + dir + "/{{ .Name }}/{{ .UID }}.db?root=" + dir
		}
		f.Reconfigure(func(o *reconciler.Options) { o.MaxDisrupted = 99 })
		defer f.runs()()

		wishes, requests := []desired.Cluster{}, []desired.Backup{}
		for i, name := range stuck {
			if i%2 == 0 {
				wishes = append(wishes, reconciler.WishOf(name, required, elsewhere, clustertest.SetVersion("3.6.16")))
				continue
			}
			wishes = append(wishes, reconciler.WishOf(name, elsewhere))
			q := clustertest.Once(func(r *schema.BackupRequest) { r.Source.ClusterName = name })
			q.Metadata.Name = "of-" + name
			requests = append(requests, q)
		}
		f.R.SetBackups(requests)
		f.R.SetDesired(append(wishes, reconciler.WishOf("orders", required), reconciler.WishOf("users")))
		f.wait(2 * time.Minute) // all that will begin has begun, and gave way
		f.R.SetDesired(append(wishes, reconciler.WishOf("orders", required), reconciler.WishOf("users", required, clustertest.SetVersion("3.6.16"))))
		f.breaks()
		f.wait(90 * time.Second)

		if given := len(f.Lines("step failed", "error")); given > 0 {
			t.Errorf("%d backups were given up before", given)
		}
		if !slices.Contains(f.rolls(), "shop/users") {
			t.Error("users was not rolled")
		}
		if !slices.ContainsFunc(f.Lines("step done", "action"), func(a string) bool { return strings.Contains(a, "orders-1 leaves") }) {
			t.Error("orders was not repaired")
		}
		if t.Failed() {
			t.Log(f.Log)
		}
	})
}

// More clusters whose members hang than there are workers hold no other cluster: a commit to one
// whose members answer is acted on before any of them is given up.
func TestMembersThatHangHoldNoOtherCluster(t *testing.T) {
	stuck := []string{"a", "b", "c", "d", "e", "f", "g"}
	inFleet(t, append(stuck, "users"), func(f *fleet) {
		h := &hanging{Members: fleetEtcd{f.Etcd, f.etcds}, names: map[string]bool{}, given: make(chan struct{})}
		f.Ask(h)
		defer f.runs()()
		wishes := []desired.Cluster{reconciler.WishOf("orders"), reconciler.WishOf("users")}
		for _, name := range stuck {
			h.names["shop/"+name] = true
			wishes = append(wishes, reconciler.WishOf(name))
		}
		f.R.SetDesired(wishes)
		f.wait(time.Minute)
		if n := h.asked.Load(); int(n) != len(stuck) {
			t.Errorf("%d clusters are asked and do not answer, want %d", n, len(stuck))
		}
		wishes[1] = reconciler.WishOf("users", func(c *schema.EtcdCluster) { c.Spec.Upgrade.Wave = 7 })
		f.R.SetDesired(wishes)
		f.wait(time.Minute)
		if !slices.Contains(f.Lines("step done", "cluster"), "shop/users") {
			t.Errorf("nothing was done about users while others hang:\n%s", f.Log)
		}
		close(h.given)
	})
}

// A cluster that does not answer is looked at again soon, and where many do not, as in a zone that is down, less often.
func TestManyClustersThatAreSilentAreLookedAtLessOften(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Ask(silence{w.Etcd})
		pass := func() time.Duration {
			wait, err := w.R.Pass(w.Context(), w.Wish)
			if err != nil {
				t.Error(err)
			}
			return wait
		}
		if wait := pass(); wait > 5*time.Second {
			t.Errorf("alone it waits %s", wait)
		}
		for i := range 500 {
			go w.R.Observer.Lanes.Ask(w.Context(), fmt.Sprint("shop/silent-", i), func() { time.Sleep(time.Second) })
		}
		time.Sleep(time.Minute)
		if wait := pass(); wait < 20*time.Second || wait > 21*time.Second {
			t.Errorf("beside 500 it waits %s, want some 20s", wait)
		}
	})
}

// silence are members that are asked in vain.
type silence struct{ reconciler.Members }

func (s silence) Round(ctx context.Context, cluster string, members []etcd.Endpoint, deep bool) state.Round {
	time.Sleep(3 * time.Second)
	r := s.Members.Round(ctx, cluster, members, deep)
	r.Problem = "no member answers"
	for i := range r.Members {
		r.Members[i].Problem = "status: context deadline exceeded"
	}
	return r
}

// hanging are members of which some clusters do not answer until they are given up.
type hanging struct {
	reconciler.Members
	names map[string]bool
	asked atomic.Int32
	given chan struct{}
}

func (h *hanging) Round(ctx context.Context, cluster string, members []etcd.Endpoint, deep bool) state.Round {
	if h.names[cluster] {
		h.asked.Add(1)
		<-h.given
	}
	return h.Members.Round(ctx, cluster, members, deep)
}

// runs lets the reconciler run until end is called.
func (f *fleet) runs() (end func()) {
	ctx, stop := context.WithCancel(f.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.R.Run(ctx)
	}()
	return func() {
		stop()
		<-ended
	}
}

// wait lets time pass, with the controllers acting each second.
func (f *fleet) wait(d time.Duration) {
	f.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
		f.serve()
	}
}

// breaks ends orders-1 with an empty volume, as all see it.
func (f *fleet) breaks() {
	f.Helper()
	reconcilertest.Ill(f.World, time.Now().Add(-time.Hour), func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{clustertest.Ended(naming.ContainerGuard, 3, "Error", "empty")}
	})
	f.Etcd.Change = func(r *state.Round) {
		r.Members[1].Problem, r.Members[1].Version, r.Members[1].Peers, r.Listened = "connection refused", "", state.PeersApart, true
	}
}
