package plan

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// RestoreWish is what Git says of a cluster that begins with a backup: an
// EtcdRestore.
type RestoreWish struct {
	// Name of the EtcdRestore, and SpecHash of its whole spec: together they are
	// carried out once. SourceHash is the hash of what names the backup.
	Name, SpecHash, SourceHash string
	// Source is the backup in words, without anything secret.
	Source string
	// InPlace says that Git declares a cluster of the same name as deleted, so that
	// its kept volumes may stay beside those of the new one.
	InPlace bool
}

// Restored is the restore that a cluster has begun with.
type Restored struct {
	// Name, SpecHash and SourceHash are those of the EtcdRestore.
	Name, SpecHash, SourceHash string
	// Done says that every member has joined and clients may come.
	Done bool
}

// restore begins a cluster with the data of a backup, where nothing of its name
// exists, and once. What exists is named and left as it is. Whatever follows is
// in the record then, so that the rules below go on from there:
//
//	Git's restore   the record            then
//	is there        none, and nothing is  begin
//	is there        none, but something   refuse, by name
//	is there        this restore's        go on: certificates, bootstrap, recovering, grow, admit
//	has changed     this restore's        go on while it is under way and of one backup, else refuse
//	is there        a deleted cluster's   begin beside its volumes, if Git still says Deleted
//	is there        any other cluster's   refuse
//	is gone         any                   a restore that has begun goes on, one that is over is over
func restore(s *situation) verdict {
	w, r := s.d.Restore, s.o.Record
	switch {
	case w == nil || s.d.Spec.State == schema.StateDeleted:
		return pass()
	case r != nil && r.Restored != nil && r.Restored.Name == w.Name:
		return s.restoredAlready(*w, *r.Restored)
	}
	if found := s.inTheWay(w.InPlace); len(found) > 0 {
		return refuse(fmt.Sprintf("EtcdRestore %s is refused: a restore makes a new cluster and touches nothing that exists, and there is %s", w.Name, strings.Join(found, ", ")),
			"give the new cluster another name with spec.clusterName; or, to take the place of the old one, commit it with state: Deleted, keep that file beside the restore, and wait until its pods and services are gone")
	}
	if refused := messages(release.Bad(s.wanted()), release.Refuse); len(refused) > 0 {
		return refuse(refused[0], "name another release in spec.clusterTemplate.version")
	}
	return do(BeginRestore{
		Restore: w.Name, SpecHash: w.SpecHash, SourceHash: w.SourceHash, Source: w.Source, Owner: s.claimant(),
		Member: podName(s.d.Name, 0), Version: s.d.Spec.Version, InPlace: r != nil,
	}, "Git says so, and nothing of that name is in the way; the backup is read and checked first")
}

// restoredAlready says whether what Git asks for is what was begun, or done.
func (s *situation) restoredAlready(w RestoreWish, was Restored) verdict {
	switch {
	case was.SpecHash == w.SpecHash && s.o.Record.Deleted && was.Done:
		return refuse(fmt.Sprintf("EtcdRestore %s was carried out, and its cluster was deleted since: it is not restored again", w.Name),
			"to restore the backup once more, give the EtcdRestore another metadata.name; to get the deleted cluster back, commit it as an EtcdCluster")
	case was.SpecHash == w.SpecHash:
		return pass()
	case !was.Done && was.SourceHash == w.SourceHash:
		return pass() // only the cluster is to be another one, and nobody uses it yet
	case !was.Done:
		return refuse(fmt.Sprintf("EtcdRestore %s is under way, and names another backup now", w.Name),
			"revert that; or delete the half-made cluster first, with an EtcdCluster of its name, state: Deleted and deletion.volumes: Delete, and take a restore with another metadata.name")
	}
	return refuse(fmt.Sprintf("EtcdRestore %s was carried out, and its cluster lives: what changed in the file since is not done, because a restore happens once", w.Name),
		"replace the document by an EtcdCluster of the same name whose spec is the clusterTemplate, and change that; nothing restarts by the replacement")
}

// inTheWay lists what exists under the name of the cluster. Of one that was
// deleted, its record and the volumes that it left are not in the way, where Git
// says that they are known.
func (s *situation) inTheWay(known bool) []string {
	var found []string
	kept := known && s.o.Record != nil && s.o.Record.Deleted
	switch {
	case s.o.Record != nil && !kept && s.o.Record.Deleted:
		found = append(found, fmt.Sprintf("ConfigMap %s-record, of a deleted cluster whose volumes were kept", s.d.Name))
	case s.o.Record != nil && !kept:
		found = append(found, fmt.Sprintf("ConfigMap %s-record", s.d.Name))
	}
	if s.o.Set != nil {
		found = append(found, "StatefulSet "+s.d.Name)
	}
	for _, p := range s.o.Pods {
		found = append(found, "pod "+p.Name)
	}
	for _, obj := range s.o.Objects {
		if obj.State != ObjectMissing {
			found = append(found, obj.Kind+" "+obj.Name)
		}
	}
	for _, v := range s.o.Volumes {
		if !kept {
			found = append(found, "volume claim "+v.Claim)
		}
	}
	return found
}

// fillVolume makes the volume of the first member of a restored cluster, and puts
// the backup on it. No pod of the cluster runs before that is done.
func (s *situation) fillVolume(r Recovering) verdict {
	switch volume := s.o.volume(r.Member); {
	case volume == nil && s.o.Restore.State == RestoreNone:
		return do(CreateVolume{Member: r.Member, Claim: s.claim(r.Member)}, "the backup is put on a volume of its own, before the first member starts on it")
	case volume == nil:
		return unhealthy("the volume claim of "+r.Member+" is gone, which the backup was put on",
			fmt.Sprintf("delete Job %s, and the claim is made anew and filled again", s.o.Restore.Job))
	}
	return s.restoreFirst(r)
}

// admit lets clients come to a restored cluster: when as many members as Git wants
// have joined and are healthy. Until then every write would be on one disk only,
// and the second member's failure would stop them all.
func admit(s *situation) verdict {
	if !s.formed() || s.o.Record.Restored == nil || s.o.Record.Restored.Done || !s.complete() {
		return pass()
	}
	w := *s.o.Record.Restored
	if s.d.Restore != nil && s.d.Restore.Name == w.Name {
		w.SpecHash = s.d.Restore.SpecHash
	}
	return do(EndRestore{Restore: w.Name, SpecHash: w.SpecHash}, "every member has joined and is healthy; now the Service for clients leads to them")
}

// withheld says whether the object is the clients' Service of a cluster that is
// being restored: it is made when that is done.
func (s *situation) withheld(obj Object) bool {
	r := s.o.Record
	return obj.Kind == "Service" && obj.Name == s.d.Name+"-client" && obj.State == ObjectMissing && r != nil && r.Restored != nil && !r.Restored.Done
}

// claim is the name of the volume claim of a member.
func (s *situation) claim(member string) string {
	if r := s.o.Record; r != nil && r.ClaimPrefix != "" {
		return r.ClaimPrefix + "-" + member
	}
	return claimOf(member)
}
