package schema

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxCopies is in how many namespaces the Secret of one application may be.
const maxCopies = 16

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
