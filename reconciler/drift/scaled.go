package drift

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ScaledBy is the field manager other than quorate that set the StatefulSet's number of
// replicas last, or "", and when; zero where Kubernetes does not tell.
func ScaledBy(set *appsv1.StatefulSet) (manager string, at time.Time) {
	replicas := fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "replicas"))
	own, others, err := SplitManagers(set.ManagedFields)
	if err != nil || own.Has(fieldpath.MakePathOrDie("spec", "replicas")) {
		return "", time.Time{}
	}
	return LastHolder(others, replicas)
}
