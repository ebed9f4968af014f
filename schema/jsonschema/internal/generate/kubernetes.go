package generate

import "strings"

// refused is the tag of a field of Kubernetes that no file may have.
const refused = "refused"

// kubernetesTag is what a tag would say, were the type ours: what the parser
// checks, and what the API server would refuse later.
func kubernetesTag(typeName, field string) string {
	switch name := typeName + "." + field; name {
	case "ResourceRequirements.claims":
		return refused // The pod template declares no resource claims.
	case "ResourceRequirements.limits", "ResourceRequirements.requests":
		return "form=resources"
	case "Toleration.operator":
		return "enum=Equal|Exists"
	case "Toleration.effect":
		return "enum=NoSchedule|PreferNoSchedule|NoExecute"
	case "TopologySpreadConstraint.whenUnsatisfiable":
		return "enum=DoNotSchedule|ScheduleAnyway"
	case "TopologySpreadConstraint.maxSkew", "TopologySpreadConstraint.minDomains":
		return "minimum=1"
	case "NodeSelectorRequirement.operator":
		return "enum=In|NotIn|Exists|DoesNotExist|Gt|Lt"
	case "LabelSelectorRequirement.operator":
		return "enum=In|NotIn|Exists|DoesNotExist"
	case "PodSecurityContext.runAsUser", "PodSecurityContext.runAsGroup", "PodSecurityContext.fsGroup":
		return "minimum=0,maximum=2147483647"
	default:
		if strings.HasSuffix(name, ".weight") {
			return "minimum=1,maximum=100"
		}
		return ""
	}
}
