package manifests

// Object is one object to apply.
type Object struct {
	Kind, Name string
	Object     any
}

// Objects are the manifests in the order in which they are applied.
func (m Manifests) Objects() []Object {
	return []Object{
		{"Service", *m.Headless.Name, m.Headless},
		{"Service", *m.Client.Name, m.Client},
		{"PodDisruptionBudget", *m.PDB.Name, m.PDB},
		{"StatefulSet", *m.StatefulSet.Name, m.StatefulSet},
	}
}
