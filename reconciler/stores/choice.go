package stores

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/clock"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Refusal says why no backup is chosen, and what a person can do.
type Refusal struct {
	Problem, Do string
	// None says that there is none to choose from, so that the next one would be chosen.
	None bool
}

func (r *Refusal) Error() string { return r.Problem + "; " + r.Do }

// Candidates are the backups that a restore may mean, newest first, by time and revision as
// numbers: of one cluster name, of one schedule and one cluster ID and begun before a
// time, where these are given. One that a trial restore has found bad is no backup.
func Candidates(all []backup.Manifest, namespace string, from desired.RestoreFrom, source schema.RestoreSource) []backup.Manifest {
	var candidates []backup.Manifest
	for _, m := range all {
		switch {
		case m.Namespace != namespace || m.Name != from.Cluster:
		case from.Schedule != "" && m.Schedule != from.Schedule:
		case source.ClusterID != "" && m.ClusterID != source.ClusterID:
		case source.Before != nil && !m.Time.Before(source.Before.Time):
		case !slices.Contains([]string{"", backup.DrillPassed}, m.Drill.Result):
		default:
			candidates = append(candidates, m)
		}
	}
	slices.SortStableFunc(candidates, func(a, b backup.Manifest) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.Revision, a.Revision))
	})
	return candidates
}

// newest is the newest of some candidates, where it is clear which one that is. lineage
// are the IDs of the clusters that can be meant; empty where it is unknown:
//
//	lineage  candidates                                   then
//	known    of it                                        the newest of these
//	known    of it, and it looks like one begun empty     refuse
//	known    none of it                                   refuse
//	unknown  of one cluster                               the newest
//	unknown  of several                                   refuse
//	any      one of these is dated in the future          refuse
//
// The IDs of two clusters differ also where they have the same name, one after the other
// or in two Kubernetes clusters.
func newest(candidates []backup.Manifest, lineage []string, now time.Time) (backup.Manifest, error) {
	meant, others := candidates, []backup.Manifest(nil)
	if len(lineage) > 0 {
		meant, others = nil, nil
		for _, m := range candidates {
			if slices.Contains(lineage, m.ClusterID) {
				meant = append(meant, m)
			} else {
				others = append(others, m)
			}
		}
	}
	if len(meant) == 0 {
		refusal := unclear("none of them is of the cluster that the record names ("+strings.Join(lineage, ", ")+")", candidates)
		refusal.None = true
		return backup.Manifest{}, refusal
	}
	groups := byCluster(meant)
	if len(lineage) == 0 && len(groups) > 1 {
		return backup.Manifest{}, unclear(fmt.Sprintf("the backups are of %d clusters, and no record says which one is meant", len(groups)), candidates)
	}
	chosen := meant[0]
	if clock.Ahead(chosen.Time, now) {
		return backup.Manifest{}, unclear("the first one is dated in the future, so that it is unknown which is the newest", meant)
	}
	for _, other := range others {
		if other.Time.Before(chosen.Time) && begunEmpty(chosen, other) {
			return backup.Manifest{}, unclear("the newest is of what looks like a cluster that began empty, with less in it than an earlier one of the same name had", candidates)
		}
	}
	return chosen, nil
}

// begunEmpty reports whether a cluster has so much less than an earlier one that it looks
// like one that was made without what that had.
func begunEmpty(m, earlier backup.Manifest) bool {
	return m.Revision < earlier.Revision || m.Keys > 0 && m.Keys < earlier.Keys/2
}

// unclear is the refusal with the candidates side by side: the newest of each cluster, and
// where there is but one, its newest by now and those before it.
func unclear(why string, candidates []backup.Manifest) *Refusal {
	groups, lines := byCluster(candidates), []string(nil)
	for _, group := range groups {
		lines = append(lines, fmt.Sprintf("%s (%s)", describe(group[0]), state.Plural(len(group), "backup")))
	}
	if len(groups) == 1 {
		lines = nil
		for _, m := range candidates[:min(3, len(candidates))] {
			lines = append(lines, describe(m))
		}
	}
	return &Refusal{
		Problem: fmt.Sprintf("which backup is meant is not clear: %s; there are: %s", why, strings.Join(lines, "; ")),
		Do:      "name one of them with spec.source.objectURL; or the cluster with spec.source.clusterID, or a time with spec.source.before",
	}
}

// byCluster groups backups by their cluster, in the order of the first of each.
func byCluster(all []backup.Manifest) [][]backup.Manifest {
	var groups [][]backup.Manifest
	at := map[string]int{}
	for _, m := range all {
		i, known := at[m.ClusterID]
		if !known {
			i = len(groups)
			at[m.ClusterID], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], m)
	}
	return groups
}

// describe is a backup for people who have to tell it from others. Where it was written is
// said of a copy: who may write to a store can put one signed backup in the place of another.
func describe(m backup.Manifest) string {
	keys := ""
	if m.Keys > 0 {
		keys = fmt.Sprintf(" with %s", state.Plural(int(m.Keys), "key"))
	}
	origin := ""
	if m.Origin != "" {
		origin = fmt.Sprintf(", a copy of %q", m.Origin)
	}
	return fmt.Sprintf("taken %s of cluster %s, at revision %d%s, %s, %s%s",
		m.Time.UTC().Format("2006-01-02T15:04:05Z"), cmp.Or(m.ClusterID, "(unknown)"), m.Revision, keys, state.SizeText(m.Size), m.Object, origin)
}

// newer says how many backups of the same name are newer, and of which clusters.
func newer(all []backup.Manifest, than backup.Manifest) string {
	n, of := 0, map[string]int{}
	for _, m := range all {
		if m.Namespace == than.Namespace && m.Name == than.Name && m.Time.After(than.Time) {
			n++
			of[cmp.Or(m.ClusterID, "(unknown)")]++
		}
	}
	if n == 0 {
		return "none is newer"
	}
	var whose []string
	for _, id := range slices.Sorted(maps.Keys(of)) {
		whose = append(whose, fmt.Sprintf("%d of cluster %s", of[id], id))
	}
	return fmt.Sprintf("%d newer: %s", n, strings.Join(whose, ", "))
}
