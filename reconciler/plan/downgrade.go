package plan

import (
	"fmt"

	"github.com/quorate/quorate/schema"
)

// downgrade takes the cluster to the minor below by etcd's own way: it is told
// first, then every member brings its storage down, and only then one after the
// other gets the older binary. When Git asks for something else meanwhile, it is
// told that, too.
//
//	Git asks for         the cluster      what is done
//	the minor below      is above it      it is told: its version goes down at once
//	the minor below      goes there       wait until every storage is there
//	another minor        goes there       the downgrade is cancelled
//	anything             has got there    etcd ends the downgrade by itself
func downgrade(s *situation) verdict {
	r := s.o.round()
	switch {
	case !s.formed() || r == nil:
		return pass()
	case r.Downgrading && r.DowngradeTarget != s.wanted().Line():
		return s.cancel(r)
	case !s.rolling():
		return pass()
	case s.goesDown():
		return s.enable(r)
	case s.descending():
		return s.awaitStorage(r)
	}
	return pass()
}

// goesDown says whether Git asks for a minor below the cluster version: no member
// starts with that before etcd was told.
func (s *situation) goesDown() bool {
	return older(s.wanted().Line(), line(s.clusterVersion()))
}

// descending says whether etcd goes down to the minor that Git asks for.
func (s *situation) descending() bool {
	r := s.o.round()
	return r != nil && r.Downgrading && r.DowngradeTarget == s.wanted().Line()
}

// ours says whether a downgrade that is in progress is what Git asks for, or did
// when quorate began it. Somebody else's is not touched.
func (s *situation) ours(r *Round) bool {
	d := s.o.Record.Downgrade
	return r.DowngradeTarget == s.wanted().Line() || (d != nil && d.Line == r.DowngradeTarget)
}

// enable tells the cluster that it goes down.
func (s *situation) enable(r *Round) verdict {
	l := r.leader()
	if l == nil {
		return unhealthy("there is no leader to be told of the downgrade", "")
	}
	a := EnableDowngrade{Member: l.Name, MemberID: l.ID, From: line(r.ClusterVersion), To: s.wanted().Line()}
	if s.d.Spec.Upgrade.Backup != schema.BackupSkip {
		a.Backup = s.purpose()
	}
	return do(a, fmt.Sprintf("the cluster version is %s, and no member starts with %s before etcd brings its storage down; no member stops by this",
		line(r.ClusterVersion), s.d.Spec.Version))
}

// awaitStorage waits until every member that is to be replaced has brought its
// storage down. One that runs the older minor already need not say so: before 3.6
// nobody does.
func (s *situation) awaitStorage(r *Round) verdict {
	target := s.wanted().Line()
	for _, m := range r.Members {
		if line(m.Version) == target || line(m.StorageVersion) == target || m.Name == s.exemptName() {
			continue
		}
		v := wait(fmt.Sprintf("%s brings its storage down to %s", nameOf(m), target), s.o.Record.downgradeSince())
		if since := v.hold.Since; !since.IsZero() && s.now.Sub(since) > comeback {
			v.hold.Do = fmt.Sprintf("look at the log of %s: something that only %s can do may be in use; revert the commit to cancel the downgrade", nameOf(m), line(m.Version))
		}
		return v
	}
	return pass()
}

// cancel takes a downgrade back that Git no longer asks for. One that has got
// there ends by itself.
func (s *situation) cancel(r *Round) verdict {
	for _, m := range r.Members {
		if line(m.Version) == r.DowngradeTarget {
			continue
		}
		l := r.leader()
		if l == nil {
			return unhealthy("there is no leader to cancel the downgrade", "")
		}
		return do(CancelDowngrade{Member: l.Name, MemberID: l.ID, Line: r.DowngradeTarget},
			fmt.Sprintf("Git asks for %s now; while a member runs it, the downgrade can be taken back", s.d.Spec.Version))
	}
	return wait("every member runs "+r.DowngradeTarget+"; etcd ends the downgrade by itself within seconds", s.o.Record.downgradeSince())
}
