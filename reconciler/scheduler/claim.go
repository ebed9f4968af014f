package scheduler

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/stores"
)

// A record is a claim and not a fact: whoever may write ConfigMaps in its namespace may
// write it. What it names is obeyed only as far as Git, a manifest, or the mark on a Job
// says the same.

// What the Jobs of a backup or a schedule are for, as in their names.
const (
	nounBackup = "backup"
	nounDrill  = "drill"
)

// disbelieve takes out of a record what quorate cannot have written there, and says what.
func (k *Record) disbelieve(q desired.Backup) (what []string) {
	if q.Schedule == nil && k.drillRecord != (drillRecord{}) {
		what = append(what, "a restore drill of what is no schedule")
		k.drillRecord = drillRecord{}
	}
	if d := k.Drill; d != nil && !jobs.IsName(q, nounDrill, d.Job) {
		what = append(what, fmt.Sprintf("a restore drill by a Job %q, which is no name of one", d.Job))
		k.Drill = nil
	}
	if b := k.Begun; b != nil && b.Job != "" && !jobs.IsName(q, nounBackup, b.Job) {
		what = append(what, fmt.Sprintf("a backup by a Job %q, which is no name of one", b.Job))
		begun := *b
		begun.Job, k.Begun = "", &begun
	}
	return what
}

const topicDisbelieved = "not believed"

// reportDisbelieved tells once of what is in a record and not quorate's.
func (s *Scheduler) reportDisbelieved(q desired.Backup, k *kept, what []string) {
	if len(what) == 0 {
		s.Reporter.Said.Clear(q.Key(), topicDisbelieved)
		return
	}
	text := strings.Join(what, "; ")
	if !s.Reporter.Said.Changed(q.Key(), topicDisbelieved, text) {
		return
	}
	s.Log.Warn("record names what quorate has not made", "request", q.Key(), "cluster", q.ClusterName(), "record", k.live.Name, "named", text,
		"remedy", "it is not obeyed; look at who else writes ConfigMaps in this namespace")
	s.Reporter.Events.Event(k.live, corev1.EventTypeWarning, "RecordNotBelieved", report.Shorten("it names "+text+": that is not obeyed"))
}

// errUnclear says that nobody knows for now where the backups of a request belong.
var errUnclear = errors.New("nobody knows where its backups belong")

// place is where Git puts the backups of a request.
func (s *Scheduler) place(q desired.Backup) (stores.Place, error) {
	if name := q.Spec.Source.ClusterName; name != "" && q.Spec.Destination.ObjectURLTemplate == "" {
		key := q.Metadata.Namespace + "/" + name
		switch c, named := s.Clusters.Get(key); {
		case !named:
			return stores.Place{}, fmt.Errorf("there is no EtcdCluster %s in Git, whose file says it: %w", key, errUnclear)
		case len(c.Problems) > 0:
			return stores.Place{}, fmt.Errorf("the file of %s has errors: %w; mend it", key, errUnclear)
		}
	}
	return stores.NewPlace(s.effective(q).ObjectURLTemplate, s.urlData(q))
}
