package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/preview"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// compare plans the way from one revision to another, without any cluster.
func (f *planFlags) compare(ctx context.Context, paths []string) (*preview.Report, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	base, err := sources.ReadRevision(ctx, paths, f.base, sources.Limits{})
	if err != nil {
		return nil, err
	}
	head, err := f.readHead(ctx, paths)
	if err != nil {
		return nil, err
	}
	parser := &schema.Parser{} // most files are in both
	before, after := parse(parser, base), parse(parser, head)
	report := newReport(after)
	report.Offline, report.Base, report.Head = true, base.Commit, head.Commit
	if report.Others, err = preview.CompareOthers(before, after); err != nil {
		return nil, err
	}
	unchanged, err := f.compareClusters(report, desired.Clusters(before, base.Commit, nil), desired.Clusters(after, head.Commit, desired.Origins(before, nil)))
	if err != nil {
		return nil, err
	}
	report.Count(unchanged)
	return report, nil
}

// readHead reads what is wanted: a revision, or the files on disk.
func (f *planFlags) readHead(ctx context.Context, paths []string) (sources.Snapshot, error) {
	if f.head == "" {
		return sources.ReadPaths(ctx, paths, sources.Limits{})
	}
	s, err := sources.ReadRevision(ctx, paths, f.head, sources.Limits{})
	if err == nil && s.Tree == "" {
		err = fmt.Errorf("revision %s has no %s: quorate run would touch nothing, so nothing is planned; name a path that is there", f.head, strings.Join(paths, ", "))
	}
	return s, err
}

// compareClusters adds every cluster that differs to the report, and counts the
// others.
func (f *planFlags) compareClusters(report *preview.Report, before, after []desired.Cluster) (unchanged int, err error) {
	was, is := clustersByKey(before), clustersByKey(after)
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		c, err := preview.PlanOffline(was[key], is[key], f.kube.options)
		if err != nil {
			return 0, err
		}
		if c.Change == preview.Unchanged {
			unchanged++
			continue
		}
		report.Clusters = append(report.Clusters, c)
	}
	return unchanged, nil
}

func clustersByKey(clusters []desired.Cluster) map[string]*desired.Cluster {
	found := make(map[string]*desired.Cluster, len(clusters))
	for i := range clusters {
		found[clusters[i].Key()] = &clusters[i]
	}
	return found
}
