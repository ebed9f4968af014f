package plan

import (
	"fmt"
	"slices"
	"time"
)

// drift brings back what somebody changed beside Git: services, the disruption
// budget, the StatefulSet's replica count. None of it restarts a member.
func drift(s *situation) verdict {
	if s.o.Set != nil && s.o.Set.Terminating {
		return wait("the StatefulSet is being deleted; its pods stay, and are taken over by the next one", time.Time{})
	}
	for _, obj := range s.o.Objects {
		switch obj.State {
		case ObjectMissing:
			return do(ApplyObject{obj.Kind, obj.Name}, "it is gone, and Git says that it should be there")
		case ObjectDrifted:
			if s.contested(obj) && obj.Kind != "StatefulSet" {
				continue // a rule below tells
			}
			if s.contested(obj) {
				return s.truce(obj) // all below rests on the StatefulSet
			}
			return do(ApplyObject{obj.Kind, obj.Name}, "it differs from what Git says: "+obj.Detail)
		case ObjectInSync, ObjectForeign:
		}
	}
	if s.o.Set == nil {
		return lostSet(s)
	}
	return pass()
}

// lostSet brings back a StatefulSet that was deleted beside Git, or that has
// released its pods. Those that run are taken over. Where none run, volumes are
// there, so the members go on where they were; but only when nothing else changed,
// because a new StatefulSet starts all its members at once.
func lostSet(s *situation) verdict {
	if s.adoptable() && s.volumesLeft() == s.memberCount() {
		return do(CreateSet{s.size()}, "the StatefulSet is gone, and its pods are as Git wants them: a new one takes them over, and none restarts")
	}
	if !s.sameSettings() {
		return refuse("the StatefulSet is gone, and the file has changed since it was last carried out",
			"revert the file to what was last applied, so that the members can come back as they were")
	}
	if why := s.outgrown(); why != "" {
		return refuse("the StatefulSet is gone, and "+why, "set spec.version to a release that the members run, so that each can restart as what it is")
	}
	if left := s.volumesLeft(); left < s.memberCount() {
		return refuse(
			fmt.Sprintf("the StatefulSet is gone, and so are volumes: %d of %d are left", left, s.memberCount()),
			"bring the volumes back, or restore a backup into a new cluster; nothing is begun on empty volumes under the old identity")
	}
	return do(CreateSet{s.size()}, "the StatefulSet is gone; its members go on from their volumes")
}

// outgrown says why members could not start with the version that Git asks for, or
// "": a roll that nobody has written down as carried out has brought a newer minor,
// and the StatefulSet that knew how far it came is gone.
func (s *situation) outgrown() string {
	old, version := s.wanted().Line(), line(s.clusterVersion())
	switch {
	case older(old, version):
		return fmt.Sprintf("the cluster version is %s, which etcd %s does not start in", version, s.wanted())
	case s.o.Record.Downgrade != nil && len(s.o.Pods) == 0:
		return fmt.Sprintf("etcd was told to go down to %s, and no member is there to say how far it has come", s.o.Record.Downgrade.Line)
	case s.newerThan(old, s.versions()) && (version == "" || !s.reports(old)):
		return fmt.Sprintf("members run a newer minor than %s, and none reports that one, so they may not start with it", old)
	}
	return ""
}

// volumesLeft counts the recorded members whose volume is there to stay.
func (s *situation) volumesLeft() int {
	left := 0
	for member := range s.o.Record.Members {
		if v := s.o.volume(member); v != nil && !v.Terminating {
			left++
		}
	}
	return left
}

// adoptable says whether every pod that is left has the desired template, so that
// a StatefulSet with that template restarts none of them.
func (s *situation) adoptable() bool {
	return len(s.o.Pods) > 0 && !slices.ContainsFunc(s.o.Pods, func(p Pod) bool { return p.Template != s.d.Template })
}

// sameSettings says whether the members would come back as what they were. Of a
// cluster that sleeps the record may know no settings, and a release that is not that
// of the spec.
func (s *situation) sameSettings() bool {
	a := s.o.Record.Applied
	if a == nil || a.Settings == "" {
		return a != nil && a.SpecHash == s.d.SpecHash && a.Version == s.d.Spec.Version
	}
	return a.Settings == s.settings()
}
