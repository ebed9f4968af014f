package plan

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// obstacle tells why a field does not change on a live cluster, and what a person
// can do instead.
type obstacle struct{ field, why, way string }

// obstacles are the fields that do not change on a live cluster.
//
//	what changes instead, without a new cluster     by
//	spec.storage.size, to more                      rule enlarge
//	spec.storage.storageClassName                   spec.storage.classChange: Replace
//	the content of named Secrets                    their owner: members read it again
func obstacles() []obstacle {
	const elsewhere = ", or restore a backup into a new cluster that has it and move the clients there"
	return []obstacle{
		{state.FieldSize, "no volume shrinks", "set the size back" + elsewhere},
		{state.FieldClass, "a volume stays in its class", "set the class back, or write spec.storage.classChange: Replace to have every member replaced by a new one on a new volume, one at a time"},
		{state.FieldTLSWithAuth, "with authentication on, a client of plain text is known by a password and one of TLS by its certificate, so quorate would be locked out on the way", "set spec.auth.enabled to false, and to true again in a commit after the change of the mode"},
		{state.FieldTLSSecrets, "members with Secrets of two authorities would not trust each other in the middle of a rollout", "set the name back and renew the Secret's content, which members read again" + elsewhere},
		{state.FieldFamily, "the first family is that of the Services' addresses", "put that family first again, where another one may follow it" + elsewhere},
		{state.FieldDomain, "the certificates of running members name the domain", "set the domain back" + elsewhere},
		{state.FieldDaemonDomain, "the certificates of running members name the domain", "start quorate with the --cluster-domain that they were issued for, or write that one to spec.network.clusterDomain"},
	}
}

// explain refuses changes, each with its reason and its way.
func explain(changes []state.Change) verdict.Verdict {
	if len(changes) == 0 {
		return verdict.Pass()
	}
	var whys, ways []string
	for _, change := range changes {
		why, way := change.Text+" cannot be changed on a live cluster", "revert that part of the file"
		for _, o := range obstacles() {
			if change.Field == o.field {
				why, way = why+": "+o.why, o.way
			}
		}
		whys = append(whys, why)
		if !slices.Contains(ways, way) {
			ways = append(ways, way)
		}
	}
	return verdict.Refuse(strings.Join(whys, "; and "), strings.Join(ways, "; and "))
}
