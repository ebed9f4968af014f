package plan

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/schema"
)

// hibernate puts the members of a healthy cluster to sleep: after a backup, and
// between two rolls, because members that wake all start at once and must all
// start as what they were.
func hibernate(s *situation) verdict {
	if !s.formed() || s.d.Spec.State != schema.StateHibernated || s.open() {
		return pass()
	}
	if v := s.backupFirst(s.d.Spec.Upgrade.Backup, backupWish{
		what: "the hibernation", setting: "spec.upgrade.backup", purpose: "hibernation",
		why: "hibernation", reason: "before the members sleep, so that the data is in two places",
	}); !v.silent() {
		return v
	}
	return do(Hibernate{}, "spec.state is Hibernated; the volumes are kept, and wake as they are")
}

// open says whether a roll has begun and not ended: pods of two templates, a
// StatefulSet that has not closed it, or a downgrade that etcd has not ended.
func (s *situation) open() bool {
	if r := s.o.round(); s.o.Set.CurrentTemplate != s.o.Set.Template || (r != nil && r.Downgrading) {
		return true
	}
	for _, p := range s.o.Pods {
		if s.isMember(p.Name) && p.Template != s.o.Set.Template {
			return true
		}
	}
	return false
}

// hibernated keeps a cluster asleep, or wakes it. While it sleeps there is nobody
// to ask, so nothing below has anything to say.
func hibernated(s *situation) verdict {
	if !s.formed() || !s.o.Record.Hibernated {
		return pass()
	}
	if s.d.Spec.State != schema.StateHibernated {
		return do(Wake{}, "spec.state is no longer Hibernated; every member goes on from its own volume")
	}
	if v := s.stopAll(); !v.silent() {
		return v
	}
	if a := s.o.Record.Applied; a == nil || a.SpecHash != s.d.SpecHash {
		return do(s.recordAsleep(), "every member sleeps; what else has changed is carried out when they wake")
	}
	return idle()
}

// recordAsleep writes down that a sleeping cluster is as Git wants it. What its
// members are stays what it was: what Git says of that meanwhile is not carried out.
func (s *situation) recordAsleep() RecordApplied {
	a := s.recordApplied(s.o.Set.Version)
	if a.Settings = ""; s.o.Record.Applied != nil {
		a.Settings = s.o.Record.Applied.Settings
	}
	return a
}

// stopAll lets every pod go, and waits until the last one has.
func (s *situation) stopAll() verdict {
	if s.o.Set != nil && s.o.Set.Replicas > 0 {
		return do(ResizeSet{SetUID: s.o.Set.UID, From: s.o.Set.Replicas, To: 0, Partition: 0}, "no member is to run")
	}
	if n := len(s.o.Pods); n > 0 {
		return wait(fmt.Sprintf("%s shut down", plural(n, "pod")), time.Time{})
	}
	return pass()
}
