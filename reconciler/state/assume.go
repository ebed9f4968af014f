package state

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// AssumeState is what is left of a cluster that sleeps, or is deleted.
func (o *Observed) AssumeState(spec schema.ClusterSpec) {
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

// AssumeMember adds a member, its pod and its volume. The pod has been ready for
// long enough.
func (o *Observed) AssumeMember(before Desired, ordinal int32) {
	name := naming.Member(before.Name, ordinal)
	o.Record.Members[name] = fmt.Sprintf("(%s)", name)
	size := before.Spec.Storage.Size.Value()
	o.Volumes = append(o.Volumes, Volume{
		Claim: naming.Claim("", name), UID: fmt.Sprintf("(%s)", naming.Claim("", name)), Member: name, Ordinal: ordinal,
		Size: size, Capacity: size, Class: StorageClass(before.Spec.Storage), Bound: true, Holds: o.Record.Members[name],
	})
	o.Pods = append(o.Pods, Pod{
		Name: name, Ordinal: ordinal, UID: fmt.Sprintf("(%s)", name), Template: before.Template,
		Version: before.Spec.Version, Ready: true, Ran: true,
	})
}
