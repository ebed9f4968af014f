package outlook

import (
	"time"

	"github.com/quorate/quorate/reconciler/grants"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// AssumedCluster is in place of the cluster ID that only the real cluster knows.
const AssumedCluster = "(assumed)"

// Assume is a healthy cluster that is exactly what before says, observed a
// moment ago: formed, applied, every member ready and caught up, every object in
// sync. It is what a plan without a cluster has to build on. leader is the
// ordinal of the member that leads.
func Assume(before state.Desired, now time.Time, leader int32) state.Observed {
	o := state.Observed{
		Record: &state.Record{
			ClusterID: AssumedCluster, Members: map[string]string{},
			Applied: assumedApplied(before),
		},
		Set: &state.Set{
			UID: AssumedCluster, Replicas: before.Spec.Replicas, Partition: before.Spec.Replicas, Settled: true,
			Template: before.Template, Version: before.Spec.Version,
			CurrentTemplate: before.Template, CurrentVersion: before.Spec.Version,
			ClaimSize: before.Spec.Storage.Size.Value(), ClaimClass: state.StorageClass(before.Spec.Storage),
		},
	}
	if w := before.Restore; w != nil {
		o.Record.Restored = &state.Restored{Name: w.Name, SpecHash: w.SpecHash, SourceHash: w.SourceHash, Done: true}
	}
	for ordinal := range before.Spec.Replicas {
		o.AssumeMember(before, ordinal)
	}
	o.Rounds = assumeRounds(before, o, now, leader)
	o.AssumeState(before.Spec)
	o.Auth = grants.Assume(before.Spec.Auth)
	return o
}

// assumedApplied is the record of a spec that was applied.
func assumedApplied(before state.Desired) *state.Applied {
	s := situation.Situation{Desired: before}
	return &state.Applied{SpecHash: before.SpecHash, Settings: s.Settings(), Version: before.Spec.Version, Commit: before.Commit}
}

// assumeRounds are two rounds, the first with hashes, as the gate wants them.
func assumeRounds(before state.Desired, o state.Observed, now time.Time, leader int32) []state.Round {
	last := state.Round{At: now, ClusterID: AssumedCluster, ClusterVersion: clusterVersionOf(before.Spec.Version)}
	for _, p := range o.Pods {
		last.Members = append(last.Members, state.Member{
			ID: o.Record.Members[p.Name], Name: p.Name, Version: p.Version, Term: 1,
			Leader: o.Record.Members[naming.Member(before.Name, leader)],
		})
	}
	first := last
	first.At, first.Deep = now.Add(-state.Between), true
	return []state.Round{first, last}
}

// clusterVersionOf is what members of one release agree on: "3.6.0" for 3.6.16.
func clusterVersionOf(version string) string {
	v, err := release.Parse(version)
	if err != nil {
		return ""
	}
	return v.Line() + ".0"
}
