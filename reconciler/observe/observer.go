package observe

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/copies"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/handshake"
	"github.com/quorate/quorate/reconciler/inspect"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/memo"
	"github.com/quorate/quorate/reconciler/modes"
	"github.com/quorate/quorate/reconciler/rounds"
	"github.com/quorate/quorate/reconciler/state"
)

// Members answers questions about the members of etcd clusters; etcd.Client does.
type Members interface {
	Round(ctx context.Context, cluster string, members []etcd.Endpoint, deep bool) state.Round
	SnapshotCount(ctx context.Context, cluster string, member etcd.Endpoint) (int64, error)
	Auth(ctx context.Context, cluster string, members []etcd.Endpoint, q etcd.AuthQuestion) state.Auth
	Forget(cluster string)
}

// Observer observes clusters.
type Observer struct {
	Kube kubernetes.Interface
	// Namespaces are those that may be read; none for all.
	Namespaces kube.Namespaces
	Cache      *Cache
	Jobs       jobs.Client
	Members    Members
	// Lanes bound how many clusters' members are asked at once, and Rests are those that were at rest.
	Lanes   *rounds.Lanes
	Rests   rounds.Rests
	Fights  *drift.Fights
	Options Options
	Now     func() time.Time
	// Choose finds the backup that a restore would begin with now, so that a plan names
	// it. Nil where no store may be asked: then it is chosen when the restore begins.
	Choose func(ctx context.Context, c desired.Cluster, now time.Time) (state.Chosen, error)
	// Shake asks members by TLS whom they trust, while the authorities change. Nil where the
	// members' pods cannot be reached directly: then a plan cannot say whether they do.
	Shake func(ctx context.Context, q handshake.Question) []state.Handshake

	// Copies finds what is not as it should be of applications' Secrets in other namespaces.
	Copies *copies.Finder

	drifts drift.Cache
	// read is the last reading of each cluster's record, rendered its last rendering, and
	// checked the last finding about its certificates.
	read     memo.Map[reading]
	rendered memo.Map[rendering]
	checked  inspect.Checks
	// auths are the users and roles that were found as they should be.
	auths memo.Map[authLook]
	// choices are the backups that were chosen last.
	choices memo.Map[choice]
}

// Options are what the daemon adds to each cluster's file.
type Options struct {
	Render    manifests.Options
	BackupURL string
	Owner     state.Owner
}

// Forget drops all cached state of a cluster.
func (o *Observer) Forget(key string) {
	o.Members.Forget(key)
	o.Lanes.Forget(key)
	o.drifts.Forget(key)
	o.Fights.Forget(key)
	o.read.Forget(key)
	o.rendered.Forget(key)
	o.checked.Forget(key)
	o.auths.Forget(key)
	o.choices.Forget(key)
	o.Rests.Forget(key)
}

// Observe observes one cluster: the caches for Kubernetes, the members for
// etcd. The caches hold nothing that is not quorate's: only while a cluster has no
// record, and for Secrets that its file names, is the API server itself asked.
func (o *Observer) Observe(ctx context.Context, c desired.Cluster) (*View, error) {
	return o.observe(ctx, c, false)
}

// Look is Observe, but for members that were at rest a moment ago: these are only glanced at, and
// asked everything where anything is different. A view that was only glanced at may show that there
// is nothing to do, and nothing else rests on it.
func (o *Observer) Look(ctx context.Context, c desired.Cluster) (*View, error) {
	return o.observe(ctx, c, true)
}

// Rested notes that nothing is to be done by a view.
func (o *Observer) Rested(v *View) {
	if len(v.Observed.Rounds) == 1 && !v.Glanced {
		o.Rests.Keep(v.Cluster, v.Endpoints, v.Observed.Rounds[0])
	}
}

func (o *Observer) observe(ctx context.Context, c desired.Cluster, glance bool) (*View, error) {
	g, err := o.gather(ctx, c, glance)
	if err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	v, err := o.describe(g)
	if err == nil {
		v, err = o.foresee(ctx, v)
	}
	if err == nil {
		v, err = o.shake(ctx, v)
	}
	if err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	for i := range v.Observed.Rounds {
		o.countSnapshots(ctx, v, &v.Observed.Rounds[i])
	}
	return v, nil
}

// Refresh is the view with what a decision rests on most read past the caches: the
// record, the StatefulSet, the pods, and the object of the given kind and name. The
// members are not asked again.
func (o *Observer) Refresh(ctx context.Context, v *View, kind, name string) (*View, error) {
	before := v.gathered
	before.rounds = v.Observed.Rounds
	before.wish.EtcdCluster, before.wish.Spec.TLS = v.Cluster.EtcdCluster, v.modes.Git
	g, err := o.gatherLive(ctx, before, kind, name)
	if err != nil {
		return nil, err
	}
	return o.describe(g)
}

// Question is what Confirm finds out besides how the members are.
type Question struct {
	// Compare their data, and listen whom the leader hears.
	Compare, Listen bool
	// Stops is the member that stops next, "" for none.
	Stops string
	// Well says that nothing was wrong by what the members have answered last, which was once.
	Well bool
}

// Confirm asks the members twice more, the second time after the least time that the
// planner wants between the two; only that second time, where nothing was wrong when this pass
// has asked them in full a moment ago. Where their data is to be compared, that is the first
// time; where it raises a suspicion, they are compared once more before the second, which
// is always a quick one: a comparison may take longer than an answer counts. To listen
// whom the leader hears takes a while between the two.
//
// A member that stops, or leaves, after that is handed no leadership by a comparison.
func (o *Observer) Confirm(ctx context.Context, v *View, q Question) {
	before, between := v.Observed.Round(), state.Between
	var rounds []state.Round
	if q.Compare || q.Listen || !q.Well || !v.justAsked() {
		rounds = o.first(ctx, v, q)
		before = &rounds[len(rounds)-1]
	}
	if q.Listen {
		between = state.Listening
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(max(0, between-time.Since(before.At))):
	}
	last := o.round(ctx, v, v.Endpoints, false)
	if q.Listen {
		last.Listen(before)
	}
	v.Observed.Rounds = append(v.Observed.Rounds, append(rounds, last)...)
}

// first asks the members the first of two times.
func (o *Observer) first(ctx context.Context, v *View, q Question) []state.Round {
	endpoints := v.stopping(q.Stops)
	rounds := []state.Round{o.round(ctx, v, endpoints, q.Compare)}
	if q.Compare && state.Suspicious(rounds[0]) {
		rounds = append(rounds, o.round(ctx, v, endpoints, true))
	}
	return rounds
}

// Reach is as much of a view as a backup needs: the record, and how to reach the
// members.
func (o *Observer) Reach(ctx context.Context, c desired.Cluster) (*View, error) {
	g := gathered{wish: c.Identified()}
	var err error
	if g.liveCluster, err = o.Cache.read(g.wish); err != nil {
		return nil, err
	}
	g.modes, g.cluster = modes.Of(g.wish, g.set, g.pods)
	certified := g.modes.Certify(g.cluster)
	if g.secrets, err = o.checked.Secrets(ctx, o.Kube, o.question(g.modes, certified), g.secrets); err != nil {
		return nil, err
	}
	v := &View{Cluster: g.cluster, modes: g.modes, Endpoints: o.endpointsOf(g.modes, certified, g.liveCluster)}
	v.describeRecord(o.readRecord(g.cluster, g.liveCluster))
	return v, nil
}

// round asks every member once, and who compares data waits for no place. At a waypoint that is there for that, it asks how
// often each has saved its state, too.
func (o *Observer) round(ctx context.Context, v *View, endpoints []etcd.Endpoint, deep bool) state.Round {
	var round state.Round
	ask := func() { round = o.Members.Round(ctx, v.Cluster.Key(), endpoints, deep) }
	if deep {
		ask()
	} else {
		o.Lanes.Ask(ctx, v.Cluster.Key(), ask)
	}
	o.countSnapshots(ctx, v, &round)
	return round
}

// countSnapshots asks each member how often it has saved its state. One that does not
// answer has saved none as far as is known.
func (o *Observer) countSnapshots(ctx context.Context, v *View, round *state.Round) {
	if !v.due().Flush {
		return
	}
	var saved map[string]int64
	o.Lanes.Ask(ctx, v.Cluster.Key(), func() { saved = etcd.SnapshotCounts(ctx, o.Members, v.Cluster.Key(), v.Endpoints) })
	for i := range round.Members {
		round.Members[i].Snapshots = saved[round.Members[i].Name]
	}
}
