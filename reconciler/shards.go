package reconciler

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/statuses"
	"github.com/quorate/quorate/schema"
)

// Shards says which clusters this process reconciles, where several divide them. Clusters are
// named by namespace/name. Which one a cluster belongs to may change between two calls.
type Shards interface {
	// Enter begins work on a cluster, which leave ends: until then no other process is let
	// in. entered ends with ctx, and when another process waits for long. It returns false for
	// a cluster that is not this process's.
	Enter(ctx context.Context, cluster string) (entered context.Context, leave func(), mine bool)
	// Mine reports whether Enter would let in.
	Mine(cluster string) bool
	// Held returns an error unless this process may change something of the cluster now.
	Held(cluster string) error
	// Begin waits, until ctx ends, for the turn to begin to disrupt a cluster. All processes
	// together have one.
	Begin(ctx context.Context) (Turn, error)
	// Whose returns which process reconciles a cluster of another shard, "" for none, and
	// with which commit it has reconciled all of its clusters and written their statuses, "" for none.
	Whose(cluster string) (holder, commit string)
}

// Turn is the turn to begin to disrupt a cluster.
type Turn interface {
	// Held returns an error unless the turn still lasts.
	Held() error
	// End gives it to the next one.
	End()
}

// undivided is one process that reconciles all clusters.
type undivided struct{}

// Enter implements Shards.
func (undivided) Enter(ctx context.Context, _ string) (entered context.Context, leave func(), mine bool) {
	return ctx, func() {}, true
}

// Mine implements Shards.
func (undivided) Mine(string) bool { return true }

// Held implements Shards.
func (undivided) Held(string) error { return nil }

// Begin implements Shards.
func (undivided) Begin(context.Context) (Turn, error) { return alone{}, nil }

// Whose implements Shards.
func (undivided) Whose(string) (holder, commit string) { return "", "" }

// alone is the turn where there is one process, or none is needed.
type alone struct{}

// Held implements Turn.
func (alone) Held() error { return nil }

// End implements Turn.
func (alone) End() {}

// held returns an error unless this process may change something of the cluster now.
func (o Options) held(cluster string) error {
	if err := o.Lease(); err != nil {
		return err
	}
	return o.Shards.Held(cluster)
}

// enter begins a change of a cluster outside of its passes, which leave ends.
func (o Options) enter(ctx context.Context, cluster string) (leave func(), err error) {
	_, leave, mine := o.Shards.Enter(ctx, cluster)
	if !mine {
		return nil, fmt.Errorf("%s: another quorate reconciles it", cluster)
	}
	if err := o.held(cluster); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// Take begins with the clusters of a shard that has become this process's.
func (r *Reconciler) Take(of func(cluster string) bool) {
	r.mu.Lock()
	for key, c := range r.desired {
		if of(key) {
			r.Reporter.Adopted(*c)
			r.queue.Add(key)
		}
	}
	r.mu.Unlock()
	r.Scheduler.Reassigned(of, true)
	r.taken.Add(1)
}

// GiveUp drops all that is known of the clusters of a shard that is not this process's any
// more. Nothing is under way over them.
func (r *Reconciler) GiveUp(of func(cluster string) bool) {
	r.mu.Lock()
	for key, c := range r.desired {
		if of(key) {
			r.forget(key, *c)
		}
	}
	r.mu.Unlock()
	r.Scheduler.Reassigned(of, false)
	r.findOrphans()
}

// Told returns whether all of this process's clusters were reconciled with a commit, and what
// was found is in their ConfigMaps.
func (r *Reconciler) Told(commit string) bool {
	// This is asked every other second, and to list the statuses of all clusters costs more.
	if !r.gitRead.Load() || r.told.Load() != r.Reporter.Board.Revision()+1 {
		return false
	}
	list, _, whole := r.own()
	for _, s := range list {
		whole = whole && (s.Kind != schema.KindCluster || s.Observed == commit)
	}
	return whole
}

// Own returns what is written of this process's own objects.
func (r *Reconciler) Own() statuses.Source { return &ownStatuses{Reconciler: r} }

// ownStatuses are those of this process's objects, for the one goroutine that writes them.
type ownStatuses struct {
	*Reconciler
	// revision and elsewhere are those of the last call of Statuses.
	revision  uint64
	elsewhere map[string]bool
}

// Statuses implements statuses.Source.
func (r *ownStatuses) Statuses() (list []schema.Status, whole bool) {
	r.revision, r.elsewhere = r.Reporter.Board.Revision(), map[string]bool{}
	list, others, whole := r.own()
	for _, o := range others {
		r.elsewhere[keyOf(o.unseen)] = true
	}
	return list, whole && r.gitRead.Load()
}

// Elsewhere implements statuses.Source. What no file names any more is left to the process
// that has the cluster of its name.
func (r *ownStatuses) Elsewhere(s schema.Status) bool {
	return r.elsewhere[keyOf(s)] || !r.Options.Shards.Mine(s.Metadata.Namespace+"/"+s.Metadata.Name)
}

// Shards implements statuses.Source.
func (r *ownStatuses) Shards() uint64 { return r.taken.Load() }

// Written implements statuses.Source.
func (r *ownStatuses) Written() { r.told.Store(r.revision + 1) }

func keyOf(s schema.Status) string {
	return s.Kind + " " + s.Metadata.Namespace + "/" + s.Metadata.Name
}

// other is an object of a cluster that another process reconciles.
type other struct {
	unseen  schema.Status
	cluster string
}

// own returns the statuses of this process's objects, and which objects are another's.
func (r *Reconciler) own() (list []schema.Status, others []other, whole bool) {
	clusters, backups, board := r.Desired(), r.Scheduler.Backups(), &r.Reporter.Board
	list, whole = make([]schema.Status, 0, len(clusters)+len(backups)), true
	add := func(key, cluster, kind string, m schema.Metadata) {
		switch known := board.Known(key); {
		case !r.Options.Shards.Mine(cluster):
			others = append(others, other{report.Unseen(kind, m), cluster})
		case known == nil:
			list, whole = append(list, report.Unseen(kind, m)), false
		default:
			list = append(list, known...)
		}
	}
	for key, c := range clusters {
		add(key, key, schema.KindCluster, c.Metadata)
		if c.Restore != nil && !r.Options.Shards.Mine(key) {
			others = append(others, other{report.UnseenRestore(*c), key})
		}
	}
	for key, q := range backups {
		add(key, q.ClusterName(), q.Kind(), q.Metadata)
	}
	list = append(list, board.Orphans()...)
	report.WithScheduled(list)
	return list, others, whole
}

// elsewhere returns what others tell of their objects; whole is false where one is still to be told of. What its
// process cannot write, and what another quorate owns, never is.
func (r *Reconciler) elsewhere(others []other) (list []schema.Status, whole bool) {
	read := r.mirror.Read()
	whole = true
	for _, o := range others {
		holder, commit := r.Options.Shards.Whose(o.cluster)
		s, written, told := r.mirror.Get(o.unseen)
		switch {
		case holder == "":
			s.Status.Conditions = schema.ConditionsOf(schema.PhaseUnknown, "NoDaemon", noDaemon(s, written))
		case !told && (commit == "" || !read):
			whole = false
		}
		s.Observed = commit
		if commit == "" {
			s.Observed = "none"
		}
		list = append(list, s)
	}
	return list, whole
}

// noDaemon says that nothing is done about an object, and what is known of it.
func noDaemon(s schema.Status, written time.Time) string {
	text := "no quorate holds the shard of its cluster, so that nothing is done about it"
	if phase, why := s.Phase(); !written.IsZero() {
		text += fmt.Sprintf("; it was %s (%s) at %s", strings.ToLower(string(phase)), why.Reason, schema.TimeText(written))
	}
	return text
}

// Mirror reads what other processes tell of their clusters until ctx ends, so that Statuses
// has all.
func (r *Reconciler) Mirror(ctx context.Context) error { return r.mirror.Run(ctx) }
