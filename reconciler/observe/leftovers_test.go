package observe

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// I7: with a deleted cluster goes what quorate has made for it, and no Secret of
// another one; of a cluster that is wanted, none.
func TestLeftoversAreOnesOwn(t *testing.T) {
	own := clustertest.Orders()
	other := clustertest.Orders(func(c *schema.EtcdCluster) { c.Metadata.Name = "users" })
	secrets := map[string]*corev1.Secret{
		"orders-ca": {ObjectMeta: metav1.ObjectMeta{Labels: naming.OwnLabels(own)}},
		"users-ca":  {ObjectMeta: metav1.ObjectMeta{Labels: naming.OwnLabels(other)}},
		"theirs":    {},
	}
	for state, want := range map[schema.State]string{schema.StateDeleted: "orders-ca", schema.StateRunning: "", schema.StateHibernated: ""} {
		v := &View{Cluster: desired.Cluster{EtcdCluster: own}}
		v.Cluster.Spec.State = state
		v.describeLeftovers(secrets)
		var names []string
		for _, o := range v.Observed.Leftovers {
			names = append(names, o.Name)
		}
		if strings.Join(names, ", ") != want {
			t.Errorf("%s: %q", state, names)
		}
	}
}
