package preview

import (
	"cmp"
	"context"
	"maps"
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
// cluster whose document differs, among all others that are in force. Whoever may propose
// a change reads the report, so that it tells of nothing live but of what is in force, see
// whyUnasked. It ends with ctx where the time is too short for all of it.
func Proposal(ctx context.Context, planner Planner, inForce map[string]*desired.Cluster, before, after Revision, options Options) (*Report, error) {
	report := NewReport(after.Set)
	report.Problems = append(report.Problems, schema.Compare(before.Set, after.Set)...)
	schema.SortProblems(report.Problems)
	report.Base, report.Head = before.Commit, after.Commit
	var err error
	if report.Others, err = CompareDocuments(before.Set, after.Set); err != nil {
		return nil, err
	}
	was, is := declared(before, after)
	among, asked := maps.Clone(inForce), map[string]ClusterReport{}
	for key := range merged(was, is) {
		c, ask, err := proposedCluster(ctx, inForce, was[key], is[key], options)
		switch {
		case err != nil:
			return nil, err
		case c.Change == Unchanged:
			continue
		case ask && c.Change != Held:
			asked[key] = c
		default:
			report.Clusters = append(report.Clusters, c)
		}
		if is[key] == nil {
			delete(among, key)
		} else if ask {
			among[key] = is[key]
		}
	}
	planner.SetDesired(desired.Values(among))
	defer planner.SetDesired(nil) // closes the connections
	for key, offline := range asked {
		c, err := askAbout(ctx, planner, *is[key], offline, options)
		if err != nil {
			return nil, err
		}
		if w := was[key]; w != nil && len(w.Problems) == 0 {
			c.Warnings = append(c.Warnings, driftChanges(w.Spec.Drift, is[key].Spec.Drift)...)
		}
		report.Clusters = append(report.Clusters, c)
	}
	report.Count(0)
	return report, nil
}

// proposedCluster reports offline on a cluster that is proposed, and whether Kubernetes and
// its members may be asked about it.
func proposedCluster(ctx context.Context, inForce map[string]*desired.Cluster, was, is *desired.Cluster, options Options) (report ClusterReport, ask bool, err error) {
	if report, err = clusterOffline(was, is, options); err != nil || is == nil || report.Change == Unchanged {
		return report, false, cmp.Or(err, ctx.Err())
	}
	force := inForce[is.Key()]
	why := whyUnasked(force, *is)
	if force == nil && was != nil && report.Change != Held {
		report, err = clusterOffline(nil, is, options)
	}
	if why != "" && report.Change != Held {
		report.Unknown = append([]string{is.Key() + ": " + why}, report.Unknown...)
	}
	return report, why == "", cmp.Or(err, ctx.Err())
}

// whyUnasked is why neither Kubernetes nor the members are asked about a cluster that is
// proposed, "" where they may be: a document in force declares it, and names the Secrets
// that would be read. Else whoever may open a pull request could read the state of any
// cluster, or of a Secret, by a file that names it.
func whyUnasked(force *desired.Cluster, proposed desired.Cluster) string {
	tls := proposed.Spec.TLS
	switch {
	case force == nil:
		return "the followed branch does not declare this cluster, so it is planned as if nothing of it existed; neither Kubernetes nor members were asked about it"
	case tls.Mode == schema.TLSSecrets && tls.Secrets != force.Spec.TLS.Secrets:
		return "the followed branch does not name these Secrets in spec.tls.secrets, so it is planned from the files alone; neither Kubernetes nor members were asked about it"
	}
	return ""
}

// askAbout plans a cluster live that was reported on offline.
func askAbout(ctx context.Context, planner Planner, c desired.Cluster, offline ClusterReport, options Options) (ClusterReport, error) {
	p, err := planner.Plan(ctx, c)
	// What was not asked in time would look like members that do not answer.
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return ClusterReport{}, err
	}
	live := describeLive(c, p, options)
	live.Change, live.Changes = offline.Change, offline.Changes
	return live, nil
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
