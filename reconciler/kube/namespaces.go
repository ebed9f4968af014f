package kube

import (
	"iter"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Withheld reports whether an answer says that quorate may not read a single namespace, which
// keeps it from no other one. That it may not read all of them is a failure.
func Withheld(namespace string, err error) bool {
	return namespace != metav1.NamespaceAll && apierrors.IsForbidden(err)
}
