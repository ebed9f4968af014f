package schema

import "slices"

// Bounds are what files may declare beside what the format allows.
type Bounds struct {
	// Policy is that of the platform; nil for none.
	Policy *Policy
	// Namespaces are those that quorate works in; none for all.
	Namespaces []string
	// CheckHosts are the only hosts and ports, see CheckHost, that checks may ask: none at all
	// where it is empty, and nil where they are not known.
	CheckHosts []string
}

// confine puts aside what is declared in other namespaces than those that quorate works in: it
// may not look there, so that nothing is known of it.
func (g *gathering) confine(namespaces []string) {
	if len(namespaces) == 0 {
		return
	}
	g.declared = slices.DeleteFunc(g.declared, func(d declaration) bool {
		if d.namespace == "" || slices.Contains(namespaces, d.namespace) {
			return false // one without a namespace is held in any case
		}
		g.note(&d, d.origin.Problem(IDNamespace, "metadata.namespace", "quorate does not work in namespace %s: --namespaces names %s; add it there, and let quorate in by a RoleBinding", d.namespace, listed(namespaces)))
		g.refused = append(g.refused, d)
		return true
	})
	g.confineCopies(namespaces)
}
