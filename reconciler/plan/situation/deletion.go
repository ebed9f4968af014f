package situation

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// OneTemplate reports whether every pod has the template of the StatefulSet. Which member they
// belong to does not matter: before the cluster has formed there is no list of members.
func (s *Situation) OneTemplate() bool {
	return !slices.ContainsFunc(s.Observed.Pods, func(p state.Pod) bool { return p.Template != s.Observed.Set.Template })
}

// Orphans reports whether the pods of a StatefulSet that is being deleted stay.
func Orphans(set *state.Set) bool { return strings.Contains(set.Finalizers, "orphan") }

// WhyDeleted says why a cluster is deleted, and what comes in its place.
func WhyDeleted(s *Situation) string {
	reason := "spec.state is Deleted; the volumes are kept"
	if s.Desired.Spec.Deletion.Volumes == schema.VolumesDelete {
		reason = "spec.state is Deleted; the volumes are deleted, too, because spec.deletion.volumes is Delete"
	}
	if w := s.Desired.Restore; w != nil {
		reason += "; EtcdRestore " + w.Name + " takes its place then"
		if w.Chosen.Text != "" {
			// The deletion's own backup may be the newest by then.
			reason += ", and would now begin with the backup " + w.Chosen.Text
		}
	}
	return reason
}
