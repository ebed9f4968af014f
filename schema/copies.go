package schema

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxCopies is in how many namespaces the Secret of one application may be.
const maxCopies = 16

// copiesField is the field with the namespaces of an application, as the values of a policy name it.
const copiesField = "spec.tls.clients.namespaces"

// copies checks the other namespaces in which an application finds its certificate.
func (v *validator) copies(field, own string, c TLSClient) {
	if n := len(c.Namespaces); n > maxCopies {
		v.fail(field, "are %d, and at most %d are allowed: list the application again by another name for the others", n, maxCopies)
	}
	for i, namespace := range c.Namespaces {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch {
		case len(validation.IsDNS1123Label(namespace)) > 0:
			v.fail(at, "%s is not a namespace: use lower-case letters, digits and dashes, at most 63", clip(namespace))
		case namespace == own:
			v.fail(at, "%s is the namespace of the cluster, where the Secret is in any case: leave it out", clip(namespace))
		case slices.Contains(c.Namespaces[:i], namespace):
			v.fail(at, "%s is listed twice: keep one of them", clip(namespace))
		}
	}
}

// copyPlace is a namespace into which a file has a certificate copied, and the field that says so.
type copyPlace struct{ field, namespace string }

// copyPlaces are those of a cluster. before is the field that has it, and a dot.
func copyPlaces(before string, spec ClusterSpec) (all []copyPlace) {
	for i, c := range spec.TLS.Clients {
		for j, namespace := range c.Namespaces {
			all = append(all, copyPlace{fmt.Sprintf("%stls.clients[%d].namespaces[%d]", before, i, j), namespace})
		}
	}
	return all
}

// copyPlaces are those of what a document declares.
func (d *declaration) copyPlaces() []copyPlace {
	switch o := d.object.(type) {
	case *EtcdCluster:
		return copyPlaces("spec.", o.Spec)
	case *EtcdRestore:
		return copyPlaces("spec.clusterTemplate.", o.Spec.ClusterTemplate)
	}
	return nil
}

// confineCopies notes copies into other namespaces than those that quorate works in, where it may
// not write.
func (g *gathering) confineCopies(namespaces []string) {
	for i := range g.declared {
		d := &g.declared[i]
		for _, to := range d.copyPlaces() {
			if !slices.Contains(namespaces, to.namespace) {
				g.note(d, d.origin.Problem(IDNamespace, to.field, "quorate does not work in namespace %s: --namespaces names %s; add it there, and let quorate in by a RoleBinding", to.namespace, listed(namespaces)))
			}
		}
	}
}

// checkCopies judges where certificates are copied to: the namespaces of the rule, unless its values
// name others for that alone, which checkCluster judges.
func (g *gathering) checkCopies(d *declaration, j judgement, before string, spec ClusterSpec) {
	if _, decided := j.rule().Values[copiesField]; decided {
		return
	}
	allowed := j.rule().Namespaces
	for _, to := range copyPlaces(before, spec) {
		if !matchesText(allowed, to.namespace) {
			g.against(d, to.field, "%s does not allow namespace %s: it allows %s; the platform team may allow it for copies alone, under values, %s", j.at("namespaces"), to.namespace, listed(allowed), copiesField)
		}
	}
}

// withoutCopiesToTheSystem notes copies into namespaces of Kubernetes' own that no policy names: that
// it allows all is no word for those.
func (g *gathering) withoutCopiesToTheSystem(d *declaration, rule PolicyRule, before string, spec ClusterSpec) {
	allowed, decided := rule.Values[copiesField]
	if !decided {
		allowed = rule.Namespaces
	}
	named := slices.DeleteFunc(slices.Clone(allowed), func(pattern string) bool { return pattern == "*" })
	for _, to := range copyPlaces(before, spec) {
		if strings.HasPrefix(to.namespace, "kube-") && !matchesText(named, to.namespace) {
			g.needsPolicy(d, to.field, to.namespace, "namespaces, or values, "+copiesField)
		}
	}
}
