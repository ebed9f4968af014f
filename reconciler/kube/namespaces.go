package kube

import (
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespaces are those that quorate works in; none for all.
type Namespaces []string

// All are the namespaces to list objects of, one after the other: "" where one list is of all.
func (n Namespaces) All() iter.Seq[string] {
	if len(n) == 0 {
		n = Namespaces{metav1.NamespaceAll}
	}
	return slices.Values(n)
}
