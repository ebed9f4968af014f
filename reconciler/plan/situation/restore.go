package situation

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
)

// InTheWay lists what exists under the name of the cluster. Of one that was
// deleted, its record and the volumes that it left are not in the way, where Git
// says that they are known.
func (s *Situation) InTheWay(known bool) []string {
	var found []string
	kept := known && s.Observed.Record != nil && s.Observed.Record.Deleted
	switch {
	case s.Observed.Record != nil && !kept && s.Observed.Record.Deleted:
		found = append(found, fmt.Sprintf("ConfigMap %s, of a deleted cluster whose volumes were kept", naming.Record(s.Desired.Name)))
	case s.Observed.Record != nil && !kept:
		found = append(found, "ConfigMap "+naming.Record(s.Desired.Name))
	}
	if s.Observed.Set != nil {
		found = append(found, "StatefulSet "+s.Desired.Name)
	}
	for _, p := range s.Observed.Pods {
		found = append(found, "pod "+p.Name)
	}
	for _, obj := range s.Observed.Objects {
		if obj.State != state.ObjectMissing {
			found = append(found, obj.Kind+" "+obj.Name)
		}
	}
	for _, v := range s.Observed.Volumes {
		if !kept {
			found = append(found, "volume claim "+v.Claim)
		}
	}
	return found
}

// Withheld reports whether the object is the clients' Service of a cluster that is not
// theirs yet: it is made when the members are recorded, so that nobody writes to what may
// have to be begun again, and after a restore when that is done.
func (s *Situation) Withheld(obj state.Object) bool {
	r := s.Observed.Record
	return ForClients(s, obj) && obj.State == state.ObjectMissing && r != nil && (!r.Formed() || r.Restored != nil && !r.Restored.Done)
}

// ForClients reports whether the object is the clients' Service.
func ForClients(s *Situation, obj state.Object) bool {
	return obj.Kind == "Service" && obj.Name == naming.ClientService(s.Desired.Name)
}

// Claim is the name of the volume claim of a member.
func (s *Situation) Claim(member string) string {
	if s.Observed.Record == nil {
		return naming.Claim("", member)
	}
	return naming.Claim(s.Observed.Record.ClaimPrefix, member)
}
