package fleet

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/test/lab"
)

// Options are what is measured.
type Options struct {
	// Clusters is how many there are, and Replicas how many members each has.
	Clusters int
	Replicas int32
	// Created is how many more one commit creates; 0 for none.
	Created int
	// Args are more flags of quorate run.
	Args []string
}

const (
	// silentShare and slowShare are of how many clusters one is silent, or slow, in the second part.
	silentShare, slowShare = 10, 20
	// commits is how many there are in the second part, and changed how many healthy clusters each
	// of them changes.
	commits, changed = 25, 8
	// watched is for how long the daemon is measured at rest.
	watched = 90 * time.Second
	// interval between two polls of Git.
	interval = 500 * time.Millisecond
	// connections is how many all members have at the most.
	connections = 8000
	// limit of each wait.
	limit = 30 * time.Minute
)

// Figures are what was measured.
type Figures struct {
	Options
	// Cores is how much of a processor the daemon takes at rest, Memory what it has then in bytes,
	// Sockets how many it has open, and Questions how many members are asked a second.
	Cores     float64
	Memory    int64
	Sockets   int
	Questions float64
	// Unseen is the longest time that a member was not asked how it is, at rest, and UnseenSilent
	// that of the other members while some are silent.
	Unseen, UnseenSilent time.Duration
	// CoresSilent is as Cores, while some are silent.
	CoresSilent float64
	// Median and P99 are from a commit to the first action on a healthy cluster that it changes,
	// while some are silent.
	Median, P99 time.Duration
	// FirstActions is from the commit that creates clusters to the first action of the last of them,
	// and AllReady until the last of them is as Git says.
	FirstActions, AllReady time.Duration
}

// run is one measurement.
type run struct {
	*lab.Progress
	o        Options
	dir      string
	api      kubernetes.Interface
	members  *members
	git      *lab.GitServer
	daemon   *lab.Daemon
	clusters []clusterName
	ends     []func()

	mu sync.Mutex
	// began is when an action on each cluster began first since it was cleared, and rested when each
	// was last told to be as Git says.
	began, rested map[string]time.Time
}

// Measure measures one fleet.
func Measure(ctx context.Context, progress *lab.Progress, o Options) (f Figures, err error) {
	r := &run{Progress: progress, o: o, began: map[string]time.Time{}, rested: map[string]time.Time{}}
	defer r.end()
	for i := range o.Clusters {
		r.clusters = append(r.clusters, clusterName{number: i, replicas: o.Replicas})
	}
	f.Options = o
	for _, part := range []struct {
		what string
		do   func(context.Context, *Figures) error
	}{
		{"making the clusters", r.prepare},
		{"watching quorate at rest", r.rest},
		{"committing while members are silent", r.silent},
		{"creating clusters by one commit", r.create},
	} {
		if err := r.Do(fmt.Sprintf("%d clusters: %s", o.Clusters, part.what), func() error { return part.do(ctx, &f) }); err != nil {
			return f, err
		}
	}
	return f, r.daemon.Stop()
}

func (r *run) end() {
	for _, end := range slices.Backward(r.ends) {
		end()
	}
}

// prepare starts everything, and waits until quorate finds all clusters as Git says.
func (r *run) prepare(ctx context.Context, _ *Figures) (err error) {
	if err := allowFiles(r.files()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	r.ends = append(r.ends, cancel)
	if r.dir, err = os.MkdirTemp("", "quorate-fleet-"); err != nil {
		return err
	}
	r.ends = append(r.ends, func() { _ = os.RemoveAll(r.dir) })
	api, kubeconfig, err := r.startKubernetes(ctx)
	if err != nil {
		return err
	}
	r.api, r.members = api, startMembers()
	r.ends = append(r.ends, r.members.close)
	if _, err := startNodes(ctx, api, r.members, r.o); err != nil {
		return err
	}
	if r.git, err = lab.StartGitServer(ctx, "127.0.0.1"); err != nil {
		return err
	}
	r.ends = append(r.ends, r.git.Close)
	if err := r.commit(ctx, "all clusters", r.clusters); err != nil {
		return err
	}
	begin := time.Now()
	if err := seed(ctx, api, r.git.URL()+"@"+lab.Branch+":clusters", r.clusters); err != nil {
		return err
	}
	r.Say("made in %s", lab.Round(time.Since(begin)))
	if err := r.awaitMembers(ctx); err != nil {
		return err
	}
	begin = time.Now()
	r.daemon, err = lab.StartDaemon(ctx, lab.DaemonOptions{
		Repo: r.git.URL(), Kubeconfig: kubeconfig, Interval: interval, LogFile: filepath.Join(os.TempDir(), fmt.Sprintf("quorate-fleet-%d-%d.log", r.o.Clusters, os.Getpid())),
		Args: r.o.Args, Each: r.hear,
	})
	if err != nil {
		return err
	}
	r.ends = append(r.ends, r.daemon.Kill)
	err = r.await(ctx, r.clusters, func(key string) bool { return !r.rested[key].IsZero() })
	r.Say("all known to be as Git says after %s", lab.Round(time.Since(begin)))
	return err
}

// startKubernetes starts an API server and the controllers that clusters need.
func (r *run) startKubernetes(ctx context.Context) (api kubernetes.Interface, kubeconfig string, err error) {
	sandbox, err := lab.BuildSandbox(ctx, r.dir)
	if err != nil {
		return nil, "", err
	}
	store, err := sandbox.StartEtcd(ctx, version, filepath.Join(r.dir, "etcd"), "--unsafe-no-fsync", "--quota-backend-bytes=8589934592")
	if err != nil {
		return nil, "", err
	}
	r.ends = append(r.ends, store.Close)
	server, err := sandbox.StartAPIServer(ctx, store.URL, filepath.Join(r.dir, "api"), "--max-requests-inflight=0", "--max-mutating-requests-inflight=0", "--enable-priority-and-fairness=false")
	if err != nil {
		return nil, "", err
	}
	r.ends = append(r.ends, server.Close)
	controllers, err := sandbox.StartControllers(ctx, server, filepath.Join(r.dir, "controllers"), []string{"statefulset-controller"}, "--concurrent-statefulset-syncs=20", "--kube-api-qps=2000", "--kube-api-burst=4000")
	if err != nil {
		return nil, "", err
	}
	r.ends = append(r.ends, controllers.Close)
	kubeconfig = filepath.Join(r.dir, "kubeconfig")
	if err := server.WriteKubeconfig(kubeconfig); err != nil {
		return nil, "", err
	}
	server.Config.QPS = -1 // no limit
	server.Config.ContentType = "application/vnd.kubernetes.protobuf"
	api, err = kubernetes.NewForConfig(server.Config)
	return api, kubeconfig, err
}

// awaitMembers waits until every member listens.
func (r *run) awaitMembers(ctx context.Context) error {
	want := len(r.clusters) * int(r.o.Replicas)
	return r.Wait(ctx, "members", limit, func(context.Context) (bool, string, error) {
		r.members.mu.Lock()
		defer r.members.mu.Unlock()
		n := len(r.members.byName)
		return n >= want, fmt.Sprintf("%d of %d", n, want), nil
	})
}

// awaitStatuses waits until the status of every cluster is written for the first time: quorate writes so many
// objects a second, and is not at rest meanwhile.
func (r *run) awaitStatuses(ctx context.Context) error {
	return r.Wait(ctx, "first statuses", limit, func(ctx context.Context) (bool, string, error) {
		if err := sleep(ctx, 5*time.Second); err != nil { // to ask costs the API server something, too
			return false, "", err
		}
		without, err := r.api.AppsV1().StatefulSets("").List(ctx, metav1.ListOptions{LabelSelector: "!" + naming.LabelPhase, Limit: 1})
		if err != nil {
			return false, "", err
		}
		return len(without.Items) == 0, "some are left", nil
	})
}

// hear notes what quorate tells of its clusters.
func (r *run) hear(l lab.LogLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch l.Msg {
	case "step started":
		if r.began[l.Cluster].IsZero() {
			r.began[l.Cluster] = time.Now()
		}
	case "cluster is up to date":
		r.rested[l.Cluster] = time.Now()
	}
}

// await waits until something is so of every cluster; is is called with the lock held.
func (r *run) await(ctx context.Context, clusters []clusterName, is func(key string) bool) error {
	return r.Wait(ctx, "all clusters", limit, func(context.Context) (bool, string, error) {
		if !r.daemon.Running() {
			return false, "", fmt.Errorf("quorate has ended, see %s", r.daemon.LogFile)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		done, missing := 0, ""
		for _, c := range clusters {
			if is(c.key()) {
				done++
			} else {
				missing = c.key()
			}
		}
		return done == len(clusters), fmt.Sprintf("%d of %d, not %s", done, len(clusters), missing), nil
	})
}

// commit commits the files of clusters.
func (r *run) commit(ctx context.Context, message string, clusters []clusterName) error {
	files := map[string]string{}
	for _, c := range clusters {
		files[c.path()] = c.manifest()
	}
	_, err := r.git.Commit(ctx, message, files)
	return err
}

// watch is what the daemon takes of a processor for a while, beginning now.
func (r *run) watch(ctx context.Context, d time.Duration) (cores float64, err error) {
	before, err := processor(r.daemon.PID())
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := sleep(ctx, d); err != nil {
		return 0, err
	}
	after, err := processor(r.daemon.PID())
	return (after - before).Seconds() / time.Since(begin).Seconds(), err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// rest measures the daemon while nothing is to be done.
func (r *run) rest(ctx context.Context, f *Figures) (err error) {
	if err := r.awaitStatuses(ctx); err != nil {
		return err
	}
	if err := sleep(ctx, watched/2); err != nil { // what that has left is done
		return err
	}
	r.members.forget()
	if f.Cores, err = r.watch(ctx, watched); err != nil {
		return err
	}
	f.Questions, f.Unseen = float64(r.members.questions())/watched.Seconds(), r.members.unseen(nil)
	if f.Sockets, err = sockets(r.daemon.PID()); err != nil {
		return err
	}
	f.Memory, err = resident(r.daemon.PID())
	r.Say("%s", f.atRest())
	return err
}

// silent has some members be silent, and some slow, and commits changes of others.
func (r *run) silent(ctx context.Context, f *Figures) error {
	healthy := r.members.disturb(r.clusters)
	if err := sleep(ctx, 5*time.Second); err != nil {
		return err
	}
	r.members.forget()
	before, err := processor(r.daemon.PID())
	if err != nil {
		return err
	}
	begin := time.Now()
	var took []time.Duration
	for i := range commits {
		var list []clusterName
		for j := range changed {
			c := healthy[(i*changed+j)%len(healthy)]
			c.wave = int32(1 + (i*changed+j)/len(healthy))
			list = append(list, c)
		}
		more, err := r.react(ctx, fmt.Sprintf("change %d", i), list)
		if err != nil {
			return err
		}
		took = append(took, more...)
	}
	if left := time.Minute + 10*time.Second - time.Since(begin); left > 0 {
		if err := sleep(ctx, left); err != nil {
			return err
		}
	}
	after, err := processor(r.daemon.PID())
	if err != nil {
		return err
	}
	f.CoresSilent = (after - before).Seconds() / time.Since(begin).Seconds()
	slices.Sort(took)
	f.Median, f.P99 = took[len(took)/2], took[len(took)*99/100]
	f.UnseenSilent = r.members.unseen(func(m *member) bool { return !m.silent.Load() })
	r.Say("%s", f.whileSilent())
	return nil
}

// react commits clusters, and returns how long each waited for its first action since the commit stands.
func (r *run) react(ctx context.Context, message string, list []clusterName) (took []time.Duration, err error) {
	r.mu.Lock()
	for _, c := range list {
		delete(r.began, c.key())
	}
	r.mu.Unlock()
	if err := r.commit(ctx, message, list); err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := r.await(ctx, list, func(key string) bool { return !r.began[key].IsZero() }); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range list {
		took = append(took, r.began[c.key()].Sub(begin))
	}
	return took, nil
}

// create creates clusters by one commit, with no member silent.
func (r *run) create(ctx context.Context, f *Figures) error {
	if r.o.Created == 0 {
		return nil
	}
	r.members.calm()
	var list []clusterName
	for i := range r.o.Created {
		list = append(list, clusterName{number: r.o.Clusters + i, replicas: r.o.Replicas})
	}
	begin := time.Now()
	took, err := r.react(ctx, "new clusters", list)
	if err != nil {
		return err
	}
	f.FirstActions = slices.Max(took)
	r.Say("each new cluster has had its first action after %s", lab.Round(f.FirstActions))
	err = r.await(ctx, list, func(key string) bool { return !r.rested[key].IsZero() })
	f.AllReady = time.Since(begin)
	r.Say("all are as Git says after %s", lab.Round(f.AllReady))
	return err
}

// disturb has one of so many clusters be silent, and one slow: their first members. It returns the
// clusters that are neither.
func (m *members) disturb(clusters []clusterName) (healthy []clusterName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.byName {
		switch n := one.cluster.number / 2; { // as many with TLS as without
		case n%silentShare == 0 && one.name == one.cluster.name()+"-0":
			one.silent.Store(true)
		case n%slowShare == 1 && one.name == one.cluster.name()+"-0":
			one.slow.Store(true)
		}
	}
	for _, c := range clusters {
		if n := c.number / 2; n%silentShare != 0 && n%slowShare != 1 {
			healthy = append(healthy, c)
		}
	}
	return healthy
}

// calm has every member answer again. What silent ones were asked is over.
func (m *members) calm() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range slices.Collect(maps.Values(m.byName)) {
		one.silent.Store(false)
		one.slow.Store(false)
	}
}

// files is how many this process has open at the most: each member listens, and may have some connections. Those at
// rest are closed, so that there are never as many for a large fleet.
func (r *run) files() uint64 {
	members := (r.o.Clusters + r.o.Created) * int(r.o.Replicas)
	return uint64(members + min(3*members, connections) + 1000)
}

// allowFiles raises the limit of open files of this process, which its children have as well.
func allowFiles(n uint64) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	if l.Cur >= n {
		return nil
	}
	l.Cur, l.Max = n, max(l.Max, n)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("allow %d open files: %w: raise the limit (ulimit -Hn), or measure fewer clusters", n, err)
	}
	return nil
}
