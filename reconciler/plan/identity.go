package plan

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/schema"
)

// readable leaves a cluster alone whose file cannot be trusted.
func readable(s *situation) verdict {
	if len(s.d.Problems) == 0 {
		return pass()
	}
	return refuse(
		"the file of this cluster has errors, so the cluster is left as it is: "+strings.Join(s.d.Problems, "; "),
		"mend the file in a new commit")
}

// ownership never touches what somebody else made: an object, or volumes left
// behind by an earlier cluster of the same name.
func ownership(s *situation) verdict {
	for _, obj := range s.o.Objects {
		if obj.State == ObjectForeign {
			return refuse(
				fmt.Sprintf("%s %s exists and is not quorate's (%s)", obj.Kind, obj.Name, obj.Detail),
				"rename the cluster, or remove that object")
		}
	}
	begins := s.d.Spec.State != schema.StateDeleted || s.d.Restore != nil
	if begins && s.o.Record == nil && s.o.Set == nil && s.o.RecordProblem == "" && len(s.o.Volumes) > 0 {
		return refuse(
			fmt.Sprintf("volume claim %s exists, but there is no record of a cluster %s: its data may be somebody's only copy",
				s.o.Volumes[0].Claim, s.d.Name),
			"rename the cluster, or delete the claim if its data is not needed")
	}
	return pass()
}

// record refuses to guess about a live cluster that has lost its record.
func record(s *situation) verdict {
	if s.o.RecordProblem != "" {
		return refuse("the record of the cluster cannot be used: "+s.o.RecordProblem,
			"restore ConfigMap "+s.d.Name+"-record from a backup of the Kubernetes API")
	}
	if s.o.Record == nil && s.o.Set != nil {
		return refuse(
			fmt.Sprintf("StatefulSet %s exists, but its record (ConfigMap %s-record) is gone", s.d.Name, s.d.Name),
			"restore the ConfigMap; quorate never makes up the identity of a live cluster")
	}
	return pass()
}
