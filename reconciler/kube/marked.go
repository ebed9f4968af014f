package kube

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/reconciler/naming"
)

// Marked reports whether an object is the one that was meant by its name, which anybody can
// give to anything: it carries these labels, and goes with that owner, "" for none.
func Marked(live metav1.Object, labels map[string]string, owner types.UID) bool {
	return naming.HasLabels(live, labels) && (owner == "" || slices.ContainsFunc(live.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner }))
}
