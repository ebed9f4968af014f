package situation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Growing are the volumes of members that are smaller than Git wants them.
func (s *Situation) Growing() []state.Volume {
	wanted := s.WantedSize()
	grows := func(v state.Volume) bool { return v.Bound && !v.Terminating && v.Size < wanted }
	if !slices.ContainsFunc(s.Observed.Volumes, grows) {
		return nil // nearly always
	}
	return slices.DeleteFunc(s.MemberVolumes(), func(v state.Volume) bool { return !grows(v) })
}

// MemberVolumes are the volumes of the recorded members, and that which a restore fills, by
// ordinal. What holds foreign data is no member's, whatever its name.
func (s *Situation) MemberVolumes() []state.Volume {
	r := s.Observed.Record
	if r == nil {
		return nil
	}
	var volumes []state.Volume
	for _, v := range s.Observed.Volumes {
		_, member := r.Members[v.Member]
		if (member || r.Recovering != nil && r.Recovering.Member == v.Member) && v.Holds != state.HoldsForeign {
			volumes = append(volumes, v)
		}
	}
	slices.SortFunc(volumes, func(a, b state.Volume) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return volumes
}

// WantedSize is the size in bytes that Git asks for.
func (s *Situation) WantedSize() int64 { return s.Desired.Spec.Storage.Size.Value() }

// WantedClass is the storage class that Git names; "" where it leaves that to Kubernetes.
func (s *Situation) WantedClass() string { return state.StorageClass(s.Desired.Spec.Storage) }

// MakesWay reports whether a volume goes anyhow: its member is replaced by one with a
// volume of another class, which has the right size.
func (s *Situation) MakesWay(v state.Volume) bool {
	return s.ClassChanges() && v.Class != s.WantedClass() && s.Replaceable()
}

// Replaceable reports whether there is another member to replicate from.
func (s *Situation) Replaceable() bool { return len(s.Observed.Record.Members) > 1 }

// PodUIDs are the UIDs of all pods.
func (s *Situation) PodUIDs() string {
	var uids []string
	for _, p := range s.Observed.Pods {
		uids = append(uids, p.UID)
	}
	return strings.Join(uids, " ")
}

// ClassChanges reports whether Git asks for members with volumes of another class.
func (s *Situation) ClassChanges() bool {
	return s.Desired.Spec.Storage.ClassChange == schema.ClassChangeReplace && s.WantedClass() != ""
}

// Misplaced are the members whose volume is of another class than Git asks for,
// from the highest ordinal down: each is replaced by a new member, one at
// a time. There are none before the StatefulSet gives new members the right ones.
func (s *Situation) Misplaced() []string {
	if s.Observed.Set == nil || !s.ClassChanges() || s.Observed.Set.ClaimClass != s.WantedClass() {
		return nil
	}
	var members []string
	for _, v := range slices.Backward(s.MemberVolumes()) {
		if v.Bound && !v.Terminating && v.Class != s.Observed.Set.ClaimClass {
			members = append(members, v.Member)
		}
	}
	return members
}

// KeptOn tells why a volume is not deleted on which a recovery has put aside what a lost
// cluster had, and how a person lets that go; "" where nothing is kept.
func KeptOn(s *Situation, v *state.Volume) (why, do string) {
	if v == nil || v.Keeps == "" || !v.Bound || v.Terminating {
		return "", ""
	}
	return fmt.Sprintf("volume claim %s keeps what %s had in the lost cluster %s, and that would go with it", v.Claim, v.Member, v.Keeps),
		fmt.Sprintf("check whether that is still needed, and copy it if so: it is in a directory beside the data; then let it go: `kubectl -n %s annotate pvc %s %s-`", s.Desired.Namespace, v.Claim, naming.AnnotationKeeps)
}

// MayKeep is the ID of the lost cluster whose data may be aside on a volume, "" where there is
// none. The claim says so of every member that the lost cluster had. But one that had left it,
// or was to join, has data of it, too, which the guard puts aside all the same when the next of
// that name joins; and a recovery from before there was that word has left none on any claim.
// So only a claim that was made when the recovery was over is certain to keep nothing.
func MayKeep(s *Situation, v *state.Volume) string {
	r := s.Observed.Record.Recovered
	if v == nil || !v.Bound || v.Terminating || len(r) == 0 {
		return ""
	}
	last := r[len(r)-1]
	if v.Keeps == "" && !last.At.IsZero() && v.Created.After(last.At) {
		return ""
	}
	return cmp.Or(v.Keeps, last.ClusterID)
}

// MayHaveWritten reports whether a learner has come as far as to write to its volume: it was
// seen there, its pod has run, or the guard has found something. It may have no pod.
func MayHaveWritten(id string, v *state.Volume, p *state.Pod) bool {
	return v.Holds == id || p != nil && (p.Ran || p.Damage != "")
}

// keptAgainstGit tells of volumes that Git wants deleted, and that keep something.
func keptAgainstGit(s *Situation) []string {
	if !s.Formed() || s.Desired.Spec.Storage.RemovedVolumes != schema.VolumesDelete {
		return nil
	}
	var texts []string
	for i := range s.Observed.Volumes {
		v := &s.Observed.Volumes[i]
		if why, do := KeptOn(s, v); why != "" && s.Observed.Record.Retired[v.Member] != "" {
			texts = append(texts, v.Member+" was removed, and "+why+"; "+do)
		}
	}
	return texts
}

// ClassName names a storage class for people.
func ClassName(class string) string {
	if class == "" {
		return "the default class"
	}
	return "class " + class
}
