package schema

import (
	"maps"
	"slices"
	"strings"
)

// privileges are the fields of a cluster with the values that only a policy can allow: what the
// baseline of Kubernetes' Pod Security Standards forbids, as far as a file can say it, and the
// priorities of Kubernetes' own pods. To be let write a file is not to be let weaken a node.
//
// https://kubernetes.io/docs/concepts/security/pod-security-standards/
func privileges() map[string]func(value string) bool {
	const context = "spec.podTemplate.spec.securityContext."
	is := func(values ...string) func(string) bool {
		return func(value string) bool { return slices.Contains(values, value) }
	}
	not := func(values ...string) func(string) bool {
		return func(value string) bool { return !slices.Contains(values, value) }
	}
	begins := func(with string) func(string) bool {
		return func(value string) bool { return strings.HasPrefix(value, with) }
	}
	return map[string]func(string) bool{
		context + "seccompProfile.type":           is("Unconfined"),
		context + "appArmorProfile.type":          is("Unconfined"),
		context + "seLinuxOptions.type":           not("container_t", "container_init_t", "container_kvm_t", "container_engine_t"),
		context + "seLinuxOptions.user":           not(),
		context + "seLinuxOptions.role":           not(),
		context + "windowsOptions.hostProcess":    is("true"),
		context + "sysctls":                       not(safeSysctls()...),
		"spec.podTemplate.spec.priorityClassName": begins("system-"),
		"spec.podTemplate.metadata.annotations":   begins("container.apparmor.security.beta.kubernetes.io/"),
	}
}

// safeSysctls are those that act on the pod alone.
func safeSysctls() []string {
	return []string{
		"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range",
		"net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes",
	}
}

// withoutPrivileges notes the privileges that declarations ask for, and no policy names. A
// namespace of Kubernetes' own is one.
func (g *gathering) withoutPrivileges(p *Policy) {
	for i := range g.declared {
		d := &g.declared[i]
		var rule PolicyRule
		if p != nil {
			rule = p.Rules[p.ruleFor(d.origin.File)] // holdTo has put aside what none is for
		}
		// That a rule is for all namespaces is no word for those.
		named := slices.DeleteFunc(slices.Clone(rule.Namespaces), func(pattern string) bool { return pattern == "*" })
		if strings.HasPrefix(d.namespace, "kube-") && !matchesText(named, d.namespace) {
			g.needsPolicy(d, "metadata.namespace", d.namespace, "namespaces")
		}
		switch o := d.object.(type) {
		case *EtcdCluster:
			g.withoutPrivilegesIn(d, rule, "spec.", o.Spec)
		case *EtcdRestore:
			g.withoutPrivilegesIn(d, rule, "spec.clusterTemplate.", o.Spec.ClusterTemplate)
		}
	}
}

// withoutPrivilegesIn judges a cluster's pods. before is the field that has the cluster, and a dot.
func (g *gathering) withoutPrivilegesIn(d *declaration, rule PolicyRule, before string, spec ClusterSpec) {
	g.withoutCopiesToTheSystem(d, rule, before, spec)
	pod := spec.PodTemplate
	if pod.Spec.SecurityContext == nil && pod.Spec.PriorityClassName == "" && len(pod.Metadata.Annotations) == 0 {
		return
	}
	fields, err := asFields(spec)
	if err != nil {
		g.note(d, d.origin.Problem(IDNeedsPolicy, "", "it cannot be seen what its pods are like: please report this bug"))
		return
	}
	names := privileges()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if _, decided := rule.Values[name]; decided {
			continue // by holdTo
		}
		for _, value := range heldBy(fields, strings.Split(name, ".")) {
			if names[name](value) {
				g.needsPolicy(d, before+strings.TrimPrefix(name, "spec."), value, "values, "+name)
			}
		}
	}
}

func (g *gathering) needsPolicy(d *declaration, field, value, where string) {
	g.note(d, d.origin.Problem(IDNeedsPolicy, field, "%s takes the platform's word: leave it out, or have it named in the file of --policy, under %s", clip(value), where))
}
