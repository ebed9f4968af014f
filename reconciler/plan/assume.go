package plan

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// assumedCluster stands for the cluster ID that only the real cluster knows.
const assumedCluster = "(assumed)"

// Assume is a healthy cluster that is exactly what before says, looked at a
// moment ago: formed, applied, every member ready and caught up, every object in
// sync. It is what a plan without a cluster has to build on. leader is the
// ordinal of the member that leads.
func Assume(before Desired, now time.Time, leader int32) Observed {
	o := Observed{
		Record: &Record{
			ClusterID: assumedCluster, Members: map[string]string{},
			Applied: assumedApplied(before),
		},
		Set: &Set{
			UID: assumedCluster, Replicas: before.Spec.Replicas, Partition: before.Spec.Replicas, Settled: true,
			Template: before.Template, Version: before.Spec.Version,
			CurrentTemplate: before.Template, CurrentVersion: before.Spec.Version,
			ClaimSize: before.Spec.Storage.Size.Value(), ClaimClass: classOf(before.Spec.Storage),
		},
	}
	if w := before.Restore; w != nil {
		o.Record.Restored = &Restored{Name: w.Name, SpecHash: w.SpecHash, SourceHash: w.SourceHash, Done: true}
	}
	for ordinal := range before.Spec.Replicas {
		o.assumeMember(before, ordinal)
	}
	o.Rounds = assumeRounds(before, o, now, leader)
	o.assumeState(before.Spec)
	return o
}

// assumedApplied is the record of a spec that was carried out.
func assumedApplied(before Desired) *Applied {
	s := situation{d: before}
	return &Applied{SpecHash: before.SpecHash, Settings: s.settings(), Version: before.Spec.Version, Commit: before.Commit}
}

// assumeState is what is left of a cluster that sleeps, or is deleted.
func (o *Observed) assumeState(spec schema.ClusterSpec) {
	if spec.State != schema.StateHibernated && spec.State != schema.StateDeleted {
		return
	}
	o.Pods, o.Rounds = nil, nil
	o.Set.Replicas, o.Set.Partition = 0, 0
	if spec.State == schema.StateHibernated {
		o.Record.Hibernated = true
		return
	}
	o.Set, o.Record.Deleted = nil, true
	if spec.Deletion.Volumes == schema.VolumesDelete {
		o.Record, o.Volumes = nil, nil
	}
}

// assumeMember adds a member, its pod and its volume. The pod has been ready for
// as long as anybody could ask.
func (o *Observed) assumeMember(before Desired, ordinal int32) {
	name := podName(before.Name, ordinal)
	o.Record.Members[name] = fmt.Sprintf("(%s)", name)
	size := before.Spec.Storage.Size.Value()
	o.Volumes = append(o.Volumes, Volume{
		Claim: claimOf(name), UID: fmt.Sprintf("(%s)", claimOf(name)), Member: name, Ordinal: ordinal,
		Size: size, Capacity: size, Class: classOf(before.Spec.Storage), Bound: true, Holds: o.Record.Members[name],
	})
	o.Pods = append(o.Pods, Pod{
		Name: name, Ordinal: ordinal, UID: fmt.Sprintf("(%s)", name), Template: before.Template,
		Version: before.Spec.Version, Ready: true, Ran: true,
	})
}

// assumeRounds are two looks, the first with hashes, as the gate wants them.
func assumeRounds(before Desired, o Observed, now time.Time, leader int32) []Round {
	last := Round{At: now, ClusterID: assumedCluster, ClusterVersion: clusterVersionOf(before.Spec.Version)}
	for _, p := range o.Pods {
		last.Members = append(last.Members, Member{
			ID: o.Record.Members[p.Name], Name: p.Name, Version: p.Version, Term: 1,
			Leader: o.Record.Members[podName(before.Name, leader)],
		})
	}
	first := last
	first.At, first.Deep = now.Add(-Between), true
	return []Round{first, last}
}

// clusterVersionOf is what members of one release agree on: "3.6.0" for 3.6.16.
func clusterVersionOf(version string) string {
	v, err := release.Parse(version)
	if err != nil {
		return ""
	}
	return v.Line() + ".0"
}
