package drift

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/state"
)

// Weigh is what hangs on the fields by which an object of a kind differs: the most of any.
// What is not known to be light is not.
func Weigh(kind string, d Drift) state.Weight {
	most := state.WeightLight
	for _, c := range d.Changes {
		most = max(most, weigh(kind, c))
	}
	return most
}

func weigh(kind string, c Change) state.Weight {
	const template = ".spec.template"
	switch {
	case below(c.Path, ".metadata"):
		return state.WeightLight
	case kind == "Service" && slices.ContainsFunc(lightOfService(), isBelow(c.Path)):
		return state.WeightLight
	case kind != "StatefulSet":
		return state.WeightMembers
	case !below(c.Path, template):
		if slices.ContainsFunc(lightOfSet(), isBelow(c.Path)) {
			return state.WeightLight
		}
		return state.WeightAll
	case lightInTemplate(strings.TrimPrefix(c.Path, template), c):
		return state.WeightLight
	}
	return state.WeightMembers
}

// lightOfService are fields of a Service by which members and clients are found the same.
func lightOfService() []string {
	return []string{
		".spec.type", ".spec.ipFamilies", ".spec.ipFamilyPolicy", ".spec.sessionAffinity", ".spec.sessionAffinityConfig",
		".spec.internalTrafficPolicy", ".spec.externalTrafficPolicy", ".spec.trafficDistribution", ".spec.allocateLoadBalancerNodePorts",
	}
}

func lightOfSet() []string { return []string{".spec.revisionHistoryLimit", ".spec.minReadySeconds"} }

// lightInTemplate is about a path within the pod template. An image may come from another
// registry: its name and its tag stay.
func lightInTemplate(path string, c Change) bool {
	switch {
	case below(path, ".metadata"):
		return !strings.Contains(path, "quorate.dev/")
	case slices.ContainsFunc([]string{
		"affinity", "tolerations", "topologySpreadConstraints", "nodeSelector", "priorityClassName", "schedulerName", "imagePullSecrets",
		"securityContext", "enableServiceLinks", "automountServiceAccountToken", "serviceAccountName",
	}, func(field string) bool { return below(path, ".spec."+field) }):
		return true
	}
	_, field, inContainer := strings.Cut(path, "\"].")
	switch {
	case !inContainer || !strings.Contains(path, "ontainers[name="):
		return false
	case field == "image":
		return c.Live != notShown && basename(c.Live) == basename(c.Want)
	}
	return slices.ContainsFunc([]string{"imagePullPolicy", "resources", "securityContext", "terminationMessagePolicy"}, isBelow(field))
}

// basename is an image without its registry and the folders there.
func basename(image string) string { return image[strings.LastIndex(image, "/")+1:] }

func isBelow(path string) func(string) bool {
	return func(field string) bool { return below(path, field) }
}

// below reports whether a path is a field, or within it.
func below(path, field string) bool {
	rest, found := strings.CutPrefix(path, field)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
