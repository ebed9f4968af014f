package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/test/lab"
)

// shardCount is the number of shards, several for each daemon.
const shardCount = 6

// TestShards upgrades ten clusters by one commit under three daemons that divide them. In the
// midst of the rolls one of the daemons is killed, one cut off, and one paused, each while it
// rolls a cluster. By the audit log each write about a cluster was made by the daemon that held
// its shard; no member restarts twice, and no two clusters are disrupted at once. Then one
// daemon without shards takes over, and three again: no pod restarts.
func TestShards(t *testing.T) {
	takesLong(t)
	t.Parallel()
	if *namespaced {
		t.Skip("each daemon has a user of its own")
	}
	w := newWorld(t, "shards")
	clusters := []string{name}
	for i := range 9 {
		clusters = append(clusters, fmt.Sprintf("c%d", i))
	}
	commit := func(version string) {
		files := map[string]string{}
		for i, c := range clusters {
			files["clusters/"+c+".yaml"] = w.text(spec{name: c, version: version, replicas: map[bool]int{true: 3, false: 1}[i == 0]})
		}
		w.commitFiles("All at "+version, files)
	}
	commit("3.5.21")
	f := &division{world: w, clusters: clusters}
	f.watch() // before the first of them has a lease
	for i := range 3 {
		f.daemons = append(f.daemons, f.startDaemon(i, shardCount))
	}
	f.awaitAll("3.5.21", createLimit)
	history, pods := w.recordHistory("history/"), f.pods()
	f.begin()

	commit("3.5.35")
	// Killed, it gives nothing back.
	f.awaitDone("3.5.35", 2)
	d := f.rolls()
	t.Logf("%s is killed", d.user)
	d.daemon.Kill()
	f.awaitDone("3.5.35", 4)
	w.must(d.daemon.Start())

	// Cut off, it stops before another has its shards, and ends.
	d = f.rolls()
	t.Logf("%s is cut off", d.user)
	d.door.stop()
	f.ends(d)
	f.awaitDone("3.5.35", 6)
	w.must(d.door.start())
	w.must(d.daemon.Start())

	// Paused, it does not know that others have its shards until it goes on.
	d = f.rolls()
	t.Logf("%s is paused", d.user)
	w.must(d.daemon.Pause())
	f.eventually("others to have its shards", holdLimit, func(context.Context) (bool, error) { return !f.holds(d.user), nil })
	w.must(d.daemon.Resume())
	f.ends(d)
	w.must(d.daemon.Start())
	f.awaitAll("3.5.35", changeLimit)
	f.judge(pods)
	w.checkHistory(history)

	// Without shards, and with them again, nothing restarts.
	pods = f.pods()
	for _, d := range f.daemons {
		w.must(d.daemon.Stop())
	}
	alone := f.startDaemon(3, 1)
	_, _, err := alone.daemon.WaitFor(t.Context(), 0, holdLimit, acts)
	w.must(err)
	_, _, err = alone.daemon.WaitFor(t.Context(), 0, holdLimit, lab.Idle(w.key(), "3.5.35"))
	w.must(err)
	for _, d := range f.daemons {
		w.must(d.daemon.Start())
	}
	w.must(alone.daemon.Stop())
	f.eventually("each shard to have a daemon again", holdLimit, func(context.Context) (bool, error) { return f.held() == shardCount, nil })
	time.Sleep(quiet)
	if after := f.pods(); fmt.Sprint(after) != fmt.Sprint(pods) {
		t.Errorf("pods were\n%v\nand are\n%v", pods, after)
	}
}

// division is several daemons that divide the clusters of a test.
type division struct {
	*world
	clusters []string
	daemons  []*dividing

	mu sync.Mutex
	// tenancies are those of each lease, in order.
	tenancies map[string][]holding
	// sets are the StatefulSets as they were seen last, disrupted how many of them were at most
	// at once, and replaced how often each pod was made anew since begin.
	sets      map[string]*appsv1.StatefulSet
	disrupted int
	replaced  map[string]int
	begun     bool
}

// dividing is one of the daemons.
type dividing struct {
	daemon *lab.Daemon
	door   *tunnel
	user   string
	rights *lab.Rights
}

// holding is a time in which a daemon held a lease; until is zero while it does.
type holding struct {
	holder      string
	from, until time.Time
}

// startDaemon starts a daemon with a user of its own, whose way to the API server can be shut.
func (f *division) startDaemon(i, shards int) *dividing {
	f.Helper()
	user := fmt.Sprintf("daemon-%d", i)
	rights, err := f.cluster.GrantShards(f.Context(), shared.dir, f.namespace, "-"+user)
	f.must(err)
	f.Cleanup(func() {
		if err := rights.Revoke(context.Background()); err != nil {
			f.Error(err)
		}
	})
	config, err := clientcmd.LoadFromFile(rights.Kubeconfig)
	f.must(err)
	d := &dividing{user: user, rights: rights}
	for _, c := range config.Clusters {
		server := strings.TrimPrefix(c.Server, "https://")
		d.door = f.startTunnel(server)
		c.TLSServerName, _, _ = strings.Cut(server, ":")
		c.Server = "https://" + d.door.address
	}
	f.must(clientcmd.WriteToFile(*config, rights.Kubeconfig))
	options := f.options
	options.Kubeconfig, options.LogFile = rights.Kubeconfig, filepath.Join(shared.dir, "shards-"+user+".log")
	options.Args = []string{"--leader-elect", "--lease-namespace=" + f.namespace, fmt.Sprintf("--shards=%d", shards), "--max-changed-clusters=0", "--max-changed-percent=0", "--max-disrupted=1"}
	options.Env = map[string]string{"POD_NAME": user}
	for key, value := range f.options.Env {
		options.Env[key] = value
	}
	d.daemon, err = lab.StartDaemon(f.Context(), options)
	f.must(err)
	f.Cleanup(func() {
		if err := d.daemon.Stop(); err != nil {
			f.Error(err)
		}
		if f.Failed() {
			f.Logf("%s said last:\n%s", user, tail(d.daemon, 15))
		}
	})
	return d
}

// watch follows the leases, the StatefulSets and the pods.
func (f *division) watch() {
	f.Helper()
	f.tenancies, f.sets, f.replaced = map[string][]holding{}, map[string]*appsv1.StatefulSet{}, map[string]int{}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	f.Cleanup(func() { cancel(); watching.Wait() })
	selected := metav1.ListOptions{LabelSelector: naming.LabelCluster}
	for _, begin := range []func() (watch.Interface, error){
		func() (watch.Interface, error) {
			return f.cluster.Client.CoordinationV1().Leases(f.namespace).Watch(ctx, metav1.ListOptions{})
		},
		func() (watch.Interface, error) {
			return f.cluster.Client.AppsV1().StatefulSets(f.namespace).Watch(ctx, selected)
		},
		func() (watch.Interface, error) {
			return f.cluster.Client.CoreV1().Pods(f.namespace).Watch(ctx, selected)
		},
	} {
		watcher, err := begin()
		f.must(err)
		watching.Go(func() {
			for event := range watcher.ResultChan() {
				f.see(event)
			}
		})
	}
}

func (f *division) see(event watch.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch o := event.Object.(type) {
	case *coordinationv1.Lease:
		holder, list, now := "", f.tenancies[o.Name], time.Now()
		if o.Spec.HolderIdentity != nil {
			holder = *o.Spec.HolderIdentity
		}
		if n := len(list); n > 0 && list[n-1].until.IsZero() {
			if list[n-1].holder == holder {
				return
			}
			list[n-1].until = now
		}
		if holder != "" {
			list = append(list, holding{holder: holder, from: now})
		}
		f.tenancies[o.Name] = list
	case *appsv1.StatefulSet:
		f.sets[o.Name] = o
		n := 0
		for _, set := range f.sets {
			if s := set.Status; s.ReadyReplicas < *set.Spec.Replicas || s.CurrentRevision != s.UpdateRevision {
				n++
			}
		}
		if f.begun {
			f.disrupted = max(f.disrupted, n)
		}
	case *corev1.Pod:
		if f.begun && event.Type == watch.Added {
			f.replaced[o.Name]++
		}
	}
}

func (f *division) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = true
}

// done is how many clusters are what Git says, at a version.
func (f *division) done(version string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, set := range f.sets {
		at := strings.HasSuffix(set.Spec.Template.Spec.Containers[0].Image, version)
		if s := set.Status; at && s.ReadyReplicas == *set.Spec.Replicas && s.CurrentRevision == s.UpdateRevision && set.Labels[naming.LabelPhase] == "Ready" && set.Labels[naming.LabelWantedVersion] == version {
			n++
		}
	}
	return n
}

func (f *division) awaitDone(version string, n int) {
	f.Helper()
	f.eventually(fmt.Sprintf("%d clusters at %s", n, version), changeLimit, func(context.Context) (bool, error) { return f.done(version) >= n, nil })
}

func (f *division) awaitAll(version string, limit time.Duration) {
	f.Helper()
	f.eventually("all clusters at "+version, limit, func(context.Context) (bool, error) { return f.done(version) == len(f.clusters), nil })
}

// shardOf is the lease of a cluster's shard, as package shards has it.
func (f *division) shardOf(cluster string) string {
	sum := sha256.Sum256([]byte("cluster " + f.namespace + "/" + cluster))
	return fmt.Sprintf("quorate.shard-%d", binary.BigEndian.Uint32(sum[:4])%shardCount)
}

// held is how many shards a daemon holds.
func (f *division) held() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for shard := range shardCount {
		list := f.tenancies[fmt.Sprintf("quorate.shard-%d", shard)]
		if len(list) > 0 && list[len(list)-1].until.IsZero() {
			n++
		}
	}
	return n
}

// holds reports whether a daemon was the last to have any of the shards. One that is paused has them until others take
// them, which one that has only just begun to ask for them does a lease's time later.
func (f *division) holds(user string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for shard := range shardCount {
		list := f.tenancies[fmt.Sprintf("quorate.shard-%d", shard)]
		if len(list) > 0 && list[len(list)-1].holder == user {
			return true
		}
	}
	return false
}

// rolls waits for a daemon that rolls a cluster.
func (f *division) rolls() (rolling *dividing) {
	f.Helper()
	f.eventually("a daemon that rolls a cluster", changeLimit, func(context.Context) (bool, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for cluster, set := range f.sets {
			list := f.tenancies[f.shardOf(cluster)]
			if set.Status.CurrentRevision == set.Status.UpdateRevision || len(list) == 0 || !list[len(list)-1].until.IsZero() {
				continue
			}
			for _, d := range f.daemons {
				if d.user == list[len(list)-1].holder && d.daemon.Running() {
					rolling = d
				}
			}
		}
		return rolling != nil, nil
	})
	return rolling
}

// ends waits for the end of a daemon that has lost its leases.
func (f *division) ends(d *dividing) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), holdLimit)
	defer cancel()
	if err := d.daemon.Exited(ctx); err == nil || !strings.Contains(err.Error(), "exit status 1") {
		f.Errorf("%s ended with %v, want exit status 1", d.user, err)
	}
}

// pods are the UIDs of all pods.
func (f *division) pods() map[string]string {
	f.Helper()
	list, err := f.cluster.Client.CoreV1().Pods(f.namespace).List(f.Context(), metav1.ListOptions{LabelSelector: naming.LabelCluster})
	f.must(err)
	uids := map[string]string{}
	for _, p := range list.Items {
		uids[p.Name] = string(p.UID)
	}
	return uids
}

// judge wants each pod of before to be replaced once, one cluster to be disrupted at a time, and
// each write about a cluster by the daemon that held its shard.
func (f *division) judge(before map[string]string) {
	f.Helper()
	writes, err := f.cluster.WritesIn(f.Context(), f.namespace)
	f.must(err)
	f.mu.Lock()
	defer f.mu.Unlock()
	for pod := range before {
		if f.replaced[pod] != 1 {
			f.Errorf("%s was made anew %d times", pod, f.replaced[pod])
		}
	}
	if f.disrupted != 1 {
		f.Errorf("%d clusters were disrupted at once", f.disrupted)
	}
	by := map[string]int{}
	for _, one := range writes {
		lease := ""
		for _, c := range f.clusters {
			if one.Name == c || strings.HasPrefix(one.Name, c+"-") {
				lease = f.shardOf(c)
			}
		}
		if lease == "" && strings.HasPrefix(one.Name, "quorate-git-") {
			lease = "quorate.lead"
		}
		i := slices.IndexFunc(f.daemons, func(d *dividing) bool { return d.rights.Writes(one) })
		if lease == "" || one.Resource == "events" || i < 0 {
			continue
		}
		by[f.daemons[i].user]++
		if !f.heldBy(lease, f.daemons[i].user, one) {
			f.Errorf("%s: %s %s %s by %s, and %s was held by %v", one.From.Format(time.TimeOnly), one.Verb, one.Resource, one.Name, f.daemons[i].user, lease, f.tenancies[lease])
		}
	}
	f.Logf("writes about clusters by each daemon: %v; tenancies: %v", by, f.tenancies)
	if len(by) != len(f.daemons) {
		f.Errorf("not all daemons have written: %v", by)
	}
}

// heldBy reports whether a daemon held a lease during a write. What a watch tells is a moment late.
func (f *division) heldBy(lease, user string, one lab.Write) bool {
	const late = 500 * time.Millisecond
	return slices.ContainsFunc(f.tenancies[lease], func(h holding) bool {
		return h.holder == user && one.From.After(h.from.Add(-late)) && (h.until.IsZero() || one.To.Before(h.until.Add(late)))
	})
}
