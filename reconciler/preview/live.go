package preview

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Options are what the daemon adds to each cluster's file.
type Options struct {
	// Render is added to its objects.
	Render manifests.Options
	// BackupURL is the template of object URLs for clusters that name none.
	BackupURL string
	// Owner is the daemon. One without a source owns every cluster.
	Owner state.Owner
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Revision is what files declare, and the commit that they are from; "" for files on
// disk.
type Revision struct {
	Set    schema.Set
	Commit string
}

// Planner plans for live clusters and changes nothing.
type Planner interface {
	// SetDesired replaces the clusters that Git declares, among which it plans.
	SetDesired(clusters []desired.Cluster)
	// Plan reads one of them from Kubernetes and etcd, and plans.
	Plan(ctx context.Context, c desired.Cluster) (decision.Plan, error)
}

// Live reports what would be done to the clusters that run.
func Live(ctx context.Context, planner Planner, at Revision, options Options) (*Report, error) {
	report := NewReport(at.Set)
	report.Head = at.Commit
	report.Others = Documents(at.Set)
	clusters := desired.Clusters(at.Set, at.Commit, nil)
	planner.SetDesired(clusters)
	for _, c := range clusters {
		p, err := planner.Plan(ctx, c)
		if err != nil {
			return nil, err
		}
		report.Clusters = append(report.Clusters, describeLive(c, p, options))
	}
	report.Count(0)
	return report, nil
}

// Proposal reports what a change would do to the clusters that run: it plans each
// cluster whose document differs, among all others that are in force.
func Proposal(ctx context.Context, planner Planner, inForce map[string]desired.Cluster, before, after Revision, options Options) (*Report, error) {
	report := NewReport(after.Set)
	report.Problems = append(report.Problems, schema.Compare(before.Set, after.Set)...)
	schema.SortProblems(report.Problems)
	report.Base, report.Head = before.Commit, after.Commit
	var err error
	if report.Others, err = CompareDocuments(before.Set, after.Set); err != nil {
		return nil, err
	}
	was, is := declared(before, after)
	among, changed := map[string]desired.Cluster{}, map[string]ClusterReport{}
	maps.Copy(among, inForce)
	for key := range merged(was, is) {
		c, err := clusterOffline(was[key], is[key], options)
		if err != nil {
			return nil, err
		}
		if c.Change == Unchanged {
			continue
		}
		changed[key] = c
		delete(among, key)
		if is[key] != nil {
			among[key] = *is[key]
		}
	}
	planner.SetDesired(slices.Collect(maps.Values(among)))
	defer planner.SetDesired(nil) // closes the connections
	for key, c := range changed {
		if is[key] != nil && c.Change != Held {
			p, err := planner.Plan(ctx, *is[key])
			if err != nil {
				return nil, err
			}
			live := describeLive(*is[key], p, options)
			live.Change, live.Changes = c.Change, c.Changes
			c = live
		}
		report.Clusters = append(report.Clusters, c)
	}
	report.Count(0)
	return report, nil
}

// describeLive reports on a live cluster. Its leader is known, so the steps tell how
// often the leadership moves.
func describeLive(c desired.Cluster, p decision.Plan, options Options) ClusterReport {
	moves := leaderMoves(p.Steps)
	report := newClusterReport(declaredBy(c, options), p, moves, moves)
	if len(c.Problems) > 0 {
		report.Change = Held
	}
	return report
}

// declaredBy is what a document declares of its cluster, without what it renders to.
func declaredBy(c desired.Cluster, options Options) state.Desired {
	return state.Desired{
		Namespace: c.Metadata.Namespace, Name: c.Metadata.Name, Spec: c.Spec,
		BackupURL: c.BackupURL(options.BackupURL), Problems: c.Problems,
	}
}
