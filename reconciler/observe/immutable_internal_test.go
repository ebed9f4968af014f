package observe

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// 5: the first address family of a Service cannot be changed.
func TestChangesOfTheFirstFamilyAreNamed(t *testing.T) {
	const v4, v6 = corev1.IPv4Protocol, corev1.IPv6Protocol
	for name, test := range map[string]struct {
		live, wanted []corev1.IPFamily
		want         []string
	}{
		"left out":        {[]corev1.IPFamily{v4}, nil, nil},
		"the same":        {[]corev1.IPFamily{v4}, []corev1.IPFamily{v4}, nil},
		"a second one":    {[]corev1.IPFamily{v4}, []corev1.IPFamily{v4, v6}, nil},
		"one less":        {[]corev1.IPFamily{v4, v6}, []corev1.IPFamily{v4}, nil},
		"the other one":   {[]corev1.IPFamily{v4}, []corev1.IPFamily{v6}, []string{"spec.network.ipFamilies[0] (IPv4 to IPv6)"}},
		"the other order": {[]corev1.IPFamily{v6, v4}, []corev1.IPFamily{v4, v6}, []string{"spec.network.ipFamilies[0] (IPv6 to IPv4)"}},
		"no Service yet":  {nil, []corev1.IPFamily{v6}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			services := map[string]*corev1.Service{}
			if test.live != nil {
				services["orders-peers"] = &corev1.Service{Spec: corev1.ServiceSpec{IPFamilies: test.live}}
			}
			c := clustertest.Orders(func(c *schema.EtcdCluster) { c.Spec.Network.IPFamilies = test.wanted })
			if got := familyChanges(services, c); !slices.Equal(textsOf(got), test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// textsOf are the changes in words.
func textsOf(changes []state.Change) []string {
	var texts []string
	for _, c := range changes {
		texts = append(texts, c.Text)
	}
	return texts
}
