package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/schema"
)

// enlarge asks for larger volumes when Git does, one claim after the other. It waits
// for nothing: a larger volume hurts nobody, and a full disk may be why a member
// is not well.
func enlarge(s *situation) verdict {
	for _, v := range s.growing() {
		if v.Rigid == "" {
			return do(GrowVolume{Claim: v.Claim, UID: v.UID, Member: v.Member, From: v.Size, To: s.wantedSize()},
				"Git asks for a larger one, and a volume grows while it is in use")
		}
	}
	return pass()
}

// growing are the volumes of members that are smaller than Git wants them.
func (s *situation) growing() []Volume {
	wanted := s.wantedSize()
	grows := func(v Volume) bool { return v.Bound && !v.Terminating && v.Size < wanted }
	if !slices.ContainsFunc(s.o.Volumes, grows) {
		return nil // nearly always
	}
	return slices.DeleteFunc(s.memberVolumes(), func(v Volume) bool { return !grows(v) })
}

// memberVolumes are the volumes of the recorded members, by ordinal. What holds
// somebody else's data is no member's, whatever its name.
func (s *situation) memberVolumes() []Volume {
	if !s.formed() {
		return nil
	}
	var volumes []Volume
	for _, v := range s.o.Volumes {
		if _, member := s.o.Record.Members[v.Member]; member && v.Holds != HoldsForeign {
			volumes = append(volumes, v)
		}
	}
	slices.SortFunc(volumes, func(a, b Volume) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return volumes
}

// wantedSize is the size in bytes that Git asks for.
func (s *situation) wantedSize() int64 { return s.d.Spec.Storage.Size.Value() }

// volumes sees growth to its end: every volume has the size that it was asked
// for, and then the StatefulSet asks for the same of members to come. Kubernetes
// takes no change of that in place, so the StatefulSet is made anew around its
// running pods.
//
//	volume      claim          then
//	smaller     cannot grow    refused: the class says so
//	smaller     asks for more  waiting for the disk and the file system
//	as wanted   as wanted      the StatefulSet is made anew, if it says otherwise
func volumes(s *situation) verdict {
	if !s.formed() || s.o.Set == nil || s.rolling() {
		return pass()
	}
	for _, v := range s.growing() {
		if s.makesWay(v) {
			continue // and it cannot grow first
		}
		return refuse(fmt.Sprintf("the volume of %s has %s and cannot grow to %s: %s", v.Member, sizeText(v.Size), sizeText(s.wantedSize()), v.Rigid),
			"set spec.storage.size back, or let the StorageClass grow volumes (allowVolumeExpansion: true) where its provisioner can, or change the class with spec.storage.classChange: Replace")
	}
	for _, v := range s.memberVolumes() {
		if v.Bound && !v.Terminating && v.Capacity < s.wantedSize() && !s.makesWay(v) {
			return s.awaitSize(v)
		}
	}
	if v := s.reshape(); !v.silent() {
		return v
	}
	return s.awaitPlaces()
}

// makesWay says whether a volume goes anyhow: its member is replaced by one with a
// volume of another class, which has the right size.
func (s *situation) makesWay(v Volume) bool {
	return s.classChanges() && v.Class != classOf(s.d.Spec.Storage) && s.replaceable()
}

// replaceable says whether there is somebody to take the data of a member over from.
func (s *situation) replaceable() bool { return len(s.o.Record.Members) > 1 }

// awaitPlaces says why members that are to be replaced for their volumes are not.
func (s *situation) awaitPlaces() verdict {
	left := s.misplaced()
	if len(left) == 0 {
		return pass()
	}
	text := fmt.Sprintf("volumes of %s are to be of %s: %s", members(len(left)), className(s.o.Set.ClaimClass), strings.Join(left, ", "))
	if !s.replaceable() {
		return refuse(text+"; the only member has nobody to take its data over from",
			"raise spec.replicas to 3 first, and lower it again after that; or restore a backup into a new cluster")
	}
	opens, problem := s.opening()
	if problem != "" || !opens.After(s.now) {
		return pass()
	}
	v := wait(text+", one by one, once the maintenance window opens at "+opens.Format(openingLayout), time.Time{})
	v.hold.Again = min(opens.Sub(s.now), rarely)
	return v
}

// awaitSize waits for a volume that was asked to grow.
func (s *situation) awaitSize(v Volume) verdict {
	text := fmt.Sprintf("the volume of %s grows from %s to %s", v.Member, sizeText(v.Capacity), sizeText(v.Size))
	if v.Trouble != "" {
		return unhealthy(text+", but "+v.Trouble, "look at its claim "+v.Claim+"; nothing is lost, and the provisioner tries again")
	}
	if v.Growing != "" {
		text += " (" + v.Growing + ")"
	}
	return wait(text, v.GrowingSince)
}

// reshape makes the StatefulSet anew when it asks for other volumes than Git
// does: only when all its pods are as Git wants them, so that the new one finds
// nothing to restart.
func (s *situation) reshape() verdict {
	set, class := s.o.Set, classOf(s.d.Spec.Storage)
	why := ""
	switch {
	case set.ClaimSize > 0 && set.ClaimSize < s.wantedSize():
		why = fmt.Sprintf("new members would get %s instead of %s", sizeText(set.ClaimSize), sizeText(s.wantedSize()))
	case set.ClaimClass != class && s.classChanges():
		why = "new members would get volumes of " + className(set.ClaimClass) + " instead of " + className(class)
	}
	if why == "" || len(s.o.Pods) != int(set.Replicas) {
		return pass()
	}
	return do(ReleaseSet{SetUID: set.UID, Pods: s.podUIDs()}, why+": it is made anew around its pods, and none of them restarts")
}

// podUIDs are the UIDs of all pods.
func (s *situation) podUIDs() string {
	var uids []string
	for _, p := range s.o.Pods {
		uids = append(uids, p.UID)
	}
	return strings.Join(uids, " ")
}

// classChanges says whether Git asks for members with volumes of another class.
func (s *situation) classChanges() bool {
	storage := s.d.Spec.Storage
	return storage.ClassChange == schema.ClassChangeReplace && classOf(storage) != ""
}

// misplaced are the members whose volume is of another class than Git asks for,
// from the highest ordinal down: each is to be replaced by a new member, one by
// one. There are none before the StatefulSet gives new members the right ones.
func (s *situation) misplaced() []string {
	if s.o.Set == nil || !s.classChanges() || s.o.Set.ClaimClass != classOf(s.d.Spec.Storage) {
		return nil
	}
	var members []string
	for _, v := range slices.Backward(s.memberVolumes()) {
		if v.Bound && !v.Terminating && v.Class != s.o.Set.ClaimClass {
			members = append(members, v.Member)
		}
	}
	return members
}

// className names a storage class for people.
func className(class string) string {
	if class == "" {
		return "the default class"
	}
	return "class " + class
}

// nextMisplaced is the member that is replaced next for the sake of its volume, or
// "". That mends nothing, so it waits for a cluster that is well, for its turn among
// the others, and for a window. One that Git does not want goes anyhow, in its turn.
func (s *situation) nextMisplaced() string {
	members := slices.DeleteFunc(s.misplaced(), func(name string) bool { return !s.wants(name) })
	r := s.o.round()
	if len(members) == 0 || r == nil || !s.replaceable() || s.rolling() || s.gate(r) != "" || s.podsReady() != "" {
		return ""
	}
	if !fight(s).silent() || !fleet(s).silent() || !s.windowOpen() {
		return ""
	}
	return members[0]
}
