package plan

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// restore begins a cluster with the data of a backup, where nothing of its name
// exists, and once. What exists is named and left unchanged. Whatever follows is
// in the record then, so that the rules below continue from there:
//
//	Git's restore   the record            then
//	is there        none, and nothing is  begin
//	is there        none, but something   refuse, by name
//	is there        this restore's        continue: certificates, bootstrap, recovering, grow, admit
//	has changed     this restore's        continue while it is in progress and of one backup, else refuse
//	is there        a deleted cluster's   begin beside its volumes, if Git still says Deleted
//	is there        any other cluster's   refuse
//	is gone         any                   a restore that has begun continues, one that is over is over
func restore(s *situation.Situation) verdict.Verdict {
	w, r := s.Desired.Restore, s.Observed.Record
	switch {
	case w == nil || s.Desired.Spec.State == schema.StateDeleted:
		return verdict.Pass()
	case r != nil && r.Restored != nil && r.Restored.Name == w.Name:
		return restoredAlready(s, *w, *r.Restored)
	}
	switch found, bad := s.InTheWay(w.InPlace), situation.Messages(release.Bad(s.WantedVersion()), release.Refuse); {
	case len(found) > 0:
		return verdict.Refuse(fmt.Sprintf("EtcdRestore %s is refused: a restore makes a new cluster and touches nothing that exists, and there is %s", w.Name, strings.Join(found, ", ")),
			"give the new cluster another name with spec.clusterName; or, to take the place of the old one, commit it with state: Deleted, keep that file beside the restore, and wait until its pods and services are gone")
	case len(bad) > 0:
		return verdict.Refuse(bad[0], "name another release in spec.clusterTemplate.version")
	case w.Chosen.Problem != "":
		return verdict.Refuse(fmt.Sprintf("EtcdRestore %s is refused: %s", w.Name, w.Chosen.Problem), w.Chosen.Do)
	}
	return verdict.Do(action.BeginRestore{
		Restore: w.Name, SpecHash: w.SpecHash, SourceHash: w.SourceHash, Source: w.Source, Object: w.Chosen.Object, Owner: s.NextOwner(),
		Member: naming.Member(s.Desired.Name, 0), Version: s.Desired.Spec.Version, InPlace: r != nil,
	}, "as Git says, and no object of that name exists; "+w.Begins())
}

// restoredAlready reports whether what Git asks for is what was begun, or done.
func restoredAlready(s *situation.Situation, w state.RestoreFrom, was state.Restored) verdict.Verdict {
	switch {
	case was.SpecHash == w.SpecHash && s.Observed.Record.Deleted && was.Done:
		return verdict.Refuse(fmt.Sprintf("EtcdRestore %s is complete, and its cluster was deleted since: it is not restored again", w.Name),
			"to restore the backup once more, give the EtcdRestore another metadata.name; to get the deleted cluster back, commit it as an EtcdCluster")
	case was.SpecHash == w.SpecHash:
		return verdict.Pass()
	case !was.Done && was.SourceHash == w.SourceHash:
		return verdict.Pass() // only the cluster becomes another one, and it is not in use yet
	case !was.Done:
		return verdict.Refuse(fmt.Sprintf("EtcdRestore %s is under way, and names another backup now", w.Name),
			"revert that; or delete the half-made cluster first, with an EtcdCluster of its name, state: Deleted and deletion.volumes: Delete, and take a restore with another metadata.name")
	}
	return verdict.Refuse(fmt.Sprintf("EtcdRestore %s is complete; later changes to it are ignored", w.Name),
		"replace the document by an EtcdCluster of the same name whose spec is the clusterTemplate, and change that; nothing restarts by the replacement")
}

// admit lets clients come to a restored cluster: when as many members as Git wants
// have joined and are healthy. Until then every write would be on one disk only,
// and the second member's failure would stop them all.
func admit(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.Observed.Record.Restored == nil || s.Observed.Record.Restored.Done || !s.Complete() {
		return verdict.Pass()
	}
	w := *s.Observed.Record.Restored
	if s.Desired.Restore != nil && s.Desired.Restore.Name == w.Name {
		w.SpecHash = s.Desired.Restore.SpecHash
	}
	return verdict.Do(action.EndRestore{Restore: w.Name, SpecHash: w.SpecHash}, "every member has joined and is healthy; now the Service for clients leads to them")
}
