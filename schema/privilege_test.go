package schema_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/schema"
)

// 487: what weakens what keeps pods and nodes apart, or is among Kubernetes' own, is an error
// until a policy names it.
func TestPrivilegesTakeAPolicy(t *testing.T) {
	in := func(pod string) string { return declares("shop", "orders", "  podTemplate: "+pod+"\n") }
	context := func(fields string) string { return in("{spec: {securityContext: {" + fields + "}}}") }
	const field = "    spec.podTemplate.spec.securityContext."
	for name, c := range map[string]struct{ text, want, allow string }{
		"no privilege at all":         {in("{metadata: {annotations: {example.com/team: shop}}, spec: {priorityClassName: databases, securityContext: {runAsUser: 1000, seccompProfile: {type: RuntimeDefault}, seLinuxOptions: {type: container_t, level: \"s0:c1\"}, sysctls: [{name: net.ipv4.tcp_keepalive_time, value: \"60\"}]}}}"), "", ""},
		"no seccomp":                  {context("seccompProfile: {type: Unconfined}"), "seccompProfile.type", field + "seccompProfile.type: [Unconfined]"},
		"no AppArmor":                 {context("appArmorProfile: {type: Unconfined}"), "appArmorProfile.type", field + "appArmorProfile.type: [Unconfined]"},
		"another SELinux type":        {context("seLinuxOptions: {type: spc_t}"), "seLinuxOptions.type", field + "seLinuxOptions.type: [spc_t]"},
		"an SELinux user":             {context("seLinuxOptions: {user: system_u}"), "seLinuxOptions.user", field + "seLinuxOptions.user: [system_u]"},
		"an SELinux role":             {context("seLinuxOptions: {role: system_r}"), "seLinuxOptions.role", field + "seLinuxOptions.role: [system_r]"},
		"a sysctl of the node":        {context("sysctls: [{name: kernel.msgmax, value: \"1\"}]"), "securityContext.sysctls", field + "sysctls: [kernel.msgmax]"},
		"a process of the host":       {context("windowsOptions: {hostProcess: true}"), "windowsOptions.hostProcess", field + "windowsOptions.hostProcess: [\"true\"]"},
		"a priority of the system":    {in("{spec: {priorityClassName: system-node-critical}}"), "priorityClassName", "    spec.podTemplate.spec.priorityClassName: [system-*]"},
		"AppArmor, by its old name":   {in("{metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/etcd: unconfined}}}"), "annotations", "    spec.podTemplate.metadata.annotations: [container.apparmor.security.beta.kubernetes.io/etcd]"},
		"a namespace of Kubernetes":   {declares("kube-system", "orders", ""), "metadata.namespace", "  namespaces: [kube-system, shop]"},
		"a backup in one":             {"apiVersion: quorate.dev/v1alpha1\nkind: EtcdBackup\nmetadata: {namespace: kube-system, name: once}\nspec:\n  source: {clusterURL: \"http://a.example.com:2379\"}\n  destination: {objectURLTemplate: \"s3://b/{{ .UID }}.db\"}\n", "metadata.namespace", "  namespaces: [kube-*]"},
		"a copy into one":             {declares("shop", "orders", "  tls: {clients: [{name: a, namespaces: [web, kube-system]}]}\n"), "spec.tls.clients[0].namespaces[1]", "  namespaces: [shop, web, kube-*]"},
		"a copy that values allow":    {declares("shop", "orders", "  tls: {clients: [{name: a, namespaces: [kube-system]}]}\n"), "spec.tls.clients[0].namespaces[0]", "    spec.tls.clients.namespaces: [kube-system]"},
		"in the template of restores": {"apiVersion: quorate.dev/v1alpha1\nkind: EtcdRestore\nmetadata: {namespace: shop, name: back}\nspec:\n  source: {objectURL: \"s3://b/1.db\"}\n  clusterName: orders\n  clusterTemplate:\n    version: \"3.6.16\"\n    replicas: 3\n    storage: {size: 16Gi}\n    podTemplate: {spec: {priorityClassName: system-node-critical}}\n", "spec.clusterTemplate.podTemplate", "    spec.podTemplate.spec.priorityClassName: [system-node-critical]"},
	} {
		for which, bounds := range map[string]schema.Bounds{
			"without a policy":           {},
			"with one that is for all":   {Policy: policy(t, all("", ""))},
			"with one that allows other": {Policy: policy(t, all("    spec.podTemplate.spec.tolerations.key: [etcd]", ""))},
		} {
			set := (&schema.Parser{Bounds: bounds}).Parse([]schema.File{{Path: "a.yaml", Data: []byte(c.text)}})
			var found []string
			for _, p := range errorsOf(set) {
				if p.ID != schema.IDNeedsPolicy {
					t.Errorf("%s, %s: %s", name, which, p)
					continue
				}
				found = append(found, p.String())
			}
			if text := strings.Join(found, "\n"); c.want == "" && text != "" || c.want != "" && (len(found) != 1 || !strings.Contains(text, c.want) || !strings.Contains(text, "--policy")) {
				t.Errorf("%s, %s: %q", name, which, text)
			}
		}
		values, namespaces := c.allow, ""
		if strings.HasPrefix(c.allow, "  namespaces:") {
			values, namespaces = "", c.allow
		}
		set := (&schema.Parser{Bounds: schema.Bounds{Policy: policy(t, all(values, namespaces))}}).Parse([]schema.File{{Path: "a.yaml", Data: []byte(c.text)}})
		for _, p := range errorsOf(set) {
			t.Errorf("%s, allowed: %s", name, p)
		}
	}
}

func errorsOf(set schema.Set) []schema.Problem {
	return slices.DeleteFunc(set.Problems, func(p schema.Problem) bool { return p.Warning })
}

// all is a policy for all files, with some values, and with its namespaces unless that is "".
func all(values, namespaces string) string {
	if namespaces == "" {
		namespaces = "  namespaces: [\"*\"]"
	}
	if values != "" {
		values = "\n  values:\n" + values
	}
	return "apiVersion: quorate.dev/v1alpha1\nkind: Policy\nrules:\n- name: all\n  files: [\"*\"]\n" + namespaces + values + "\n"
}
