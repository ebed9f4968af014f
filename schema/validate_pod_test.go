package schema

import (
	"strings"
	"testing"
)

// Pods that Kubernetes would refuse, or that make no sense: in the words of a
// file, since that is where the slips are made. want is a part of the one
// problem, "" for none.
func TestValidatePod(t *testing.T) {
	const (
		node     = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [%]}]}}}"
		podTerms = "affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [%]}}"
		spread   = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {a: b}}}]"
	)
	in := func(frame, text string) string { return strings.Replace(frame, "%", text, 1) }
	for _, c := range []struct{ name, spec, want string }{
		{"amounts", "resources: {requests: {cpu: 500m, memory: 1Gi, example.com/gpu: 1}, limits: {cpu: 1, ephemeral-storage: 1Gi, hugepages-2Mi: 4Mi, example.com/gpu: 1}}", ""},
		{"resource in capitals", "resources: {limits: {CPU: 1}}", "resources.limits.CPU: is not a resource: write cpu, memory or ephemeral-storage, did you mean cpu?"},
		{"resource misspelt", "resources: {requests: {memroy: 1Gi}}", "resources.requests.memroy: is not a resource: write cpu, memory or ephemeral-storage, did you mean memory?"},
		{"volume as a resource", "resources: {requests: {storage: 8Gi}}", "resources.requests.storage: is not a resource of a container: write storage.size"},
		{"negative amount", "resources: {limits: {cpu: -1}}", "resources.limits.cpu: must not be negative"},
		{"claims", "resources: {claims: [{name: gpu}]}", "resources.claims: are not possible"},

		{"toleration", "tolerations: [{key: example.com/dedicated, operator: Equal, value: etcd, effect: NoExecute, tolerationSeconds: 60}]", ""},
		{"operator of another kind", "tolerations: [{key: a, operator: In}]", "tolerations[0].operator: \"In\" is not one of Equal, Exists"},
		{"Exists with a value", "tolerations: [{key: a, operator: Exists, value: b}]", "tolerations[0].value: must be left out with operator Exists"},
		{"key that is none", "tolerations: [{key: a b, operator: Exists}]", "tolerations[0].key: \"a b\" is not the key of a taint"},
		{"seconds without NoExecute", "tolerations: [{key: a, operator: Exists, effect: NoSchedule, tolerationSeconds: 60}]", "tolerations[0].tolerationSeconds: is used with effect: NoExecute only"},

		{"spread", spread, ""},
		{"spread of no topology", strings.Replace(spread, "topologyKey: zone, ", "", 1), "topologySpreadConstraints[0].topologyKey: is missing: write a label of nodes"},
		{"spread that does what", strings.Replace(spread, "whenUnsatisfiable: ScheduleAnyway, ", "", 1), "topologySpreadConstraints[0].whenUnsatisfiable: \"\" is not one of DoNotSchedule, ScheduleAnyway"},
		{"spread over few domains", strings.Replace(spread, "maxSkew: 1", "maxSkew: 1, minDomains: 3", 1), "topologySpreadConstraints[0].minDomains"},
		{"spread over a bad selector", strings.Replace(spread, "matchLabels: {a: b}", "matchExpressions: [{key: a, operator: In}]", 1), "topologySpreadConstraints[0].labelSelector: is not a label selector: write matchLabels, or matchExpressions with key, operator In"},

		{"node", in(node, "{key: disk, operator: In, values: [ssd]}, {key: gpu, operator: DoesNotExist}, {key: cores, operator: Gt, values: [\"4\"]}"), ""},
		{"node without a label", in(node, "{operator: Exists}"), "matchExpressions[0].key: is missing"},
		{"node with a bad operator", in(node, "{key: disk, operator: Equals, values: [ssd]}"), "matchExpressions[0].operator: \"Equals\" is not one of In, NotIn"},
		{"node with no value", in(node, "{key: disk, operator: In}"), "matchExpressions[0].values: is missing: operator In needs at least one"},
		{"node with two numbers", in(node, "{key: cores, operator: Lt, values: [\"4\", \"5\"]}"), "matchExpressions[0].values: has 2 values: operator Lt needs one number"},
		{"node with a value too many", in(node, "{key: gpu, operator: Exists, values: [x]}"), "matchExpressions[0].values: must be left out with operator Exists"},
		{"node of no terms", "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}", "nodeSelectorTerms: is missing: write at least one term"},
		{"node preferred by nothing", "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{preference: {}}]}}", "nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: is 0 and must be 1 to 100"},
		{"pod", in(podTerms, "{weight: 1, podAffinityTerm: {topologyKey: zone, labelSelector: {}}}"), ""},
		{"pod of no topology", in(podTerms, "{weight: 1, podAffinityTerm: {labelSelector: {}}}"), "podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: is missing"},
		{"pod preferred too much", in(podTerms, "{weight: 101, podAffinityTerm: {topologyKey: zone, labelSelector: {}}}"), "[0].weight: is 101 and must be 1 to 100"},
		{"pod of a bad selector", in(podTerms, "{weight: 1, podAffinityTerm: {topologyKey: zone, labelSelector: {matchExpressions: [{key: a, operator: Gt}]}}}"), "podAffinityTerm.labelSelector: is not a label selector"},

		{"user", "securityContext: {runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000, runAsNonRoot: true}", ""},
		{"root that must not be", "securityContext: {runAsUser: 0, runAsNonRoot: true}", "securityContext.runAsUser: is 0, root, which runAsNonRoot: true forbids"},
		{"negative user", "securityContext: {runAsUser: -1}", "securityContext.runAsUser: is -1 and must be 0 to 2147483647"},
		{"15 secret as the name of a Secret", "imagePullSecrets: [{name: hunter2/PASSWORD}]", "imagePullSecrets[0].name: is not the name of a Secret: write the name only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "podTemplate: {spec: {" + c.spec + "}}"
			if strings.HasPrefix(c.spec, "resources") {
				text = "etcd: {" + c.spec + "}"
			}
			problems := one(clusterText("orders", text)).Problems
			got := lines(problems)
			if c.want == "" && got != "" || c.want != "" && len(problems) != 1 || !strings.Contains(got, c.want) || strings.Contains(got, "hunter2") {
				t.Errorf("got:\n%s\nwant %q", got, c.want)
			}
		})
	}
}
