// Package recordtest has records for tests.
package recordtest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/record"
)

// Formed is the record of three members after they have formed.
func Formed() record.Record {
	r := record.New("orders-1f2e")
	r.ClusterID = "cdf818194e3a8c32"
	r.Members = map[string]string{"orders-0": "8e9e05c52164694d", "orders-1": "91bc3c398fb3c146", "orders-2": "fd422379fda50e48"}
	return r
}

// Stored is r as the API server would return it.
func Stored(r record.Record) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "orders-record", Namespace: "shop"},
		Data:       r.ConfigMap(clustertest.Orders()).Data,
	}
}
