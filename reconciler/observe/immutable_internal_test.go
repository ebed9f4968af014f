package observe

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// 5: a StatefulSet's claims keep their class, and volumes do not shrink.
func TestChangesOfTheStorageAreNamed(t *testing.T) {
	const size, class = "spec.storage.size (16Gi to 8Gi)", "spec.storage.storageClassName"
	for name, test := range map[string]struct {
		live    *string
		gib     string
		wanted  *string
		replace bool
		want    []string
	}{
		"the same":                    {new("standard"), "8Gi", new("standard"), false, nil},
		"left out":                    {new("standard"), "8Gi", nil, false, nil},
		"another class":               {new("standard"), "8Gi", new("fast"), false, []string{class}},
		"a class where there is none": {nil, "8Gi", new("fast"), false, []string{class}},
		"another class, by new ones":  {new("standard"), "8Gi", new("fast"), true, nil},
		"larger":                      {new("standard"), "4Gi", new("standard"), false, nil},
		"smaller":                     {new("standard"), "16Gi", new("standard"), false, []string{size}},
		"smaller, of another class":   {new("standard"), "16Gi", new("fast"), false, []string{size, class}},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.StatefulSet{}
			set.Spec.Template.Spec.Volumes = clustertest.MountedSecrets("orders-server", "orders-peer")
			set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{*clustertest.Claim("data", func(c *corev1.PersistentVolumeClaim) {
				c.Spec.StorageClassName = test.live
				c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(test.gib)}
			})}
			c := clustertest.Orders(func(c *schema.EtcdCluster) {
				c.Spec.Storage.Size, c.Spec.Storage.StorageClassName = resource.MustParse("8Gi"), test.wanted
				if test.replace {
					c.Spec.Storage.ClassChange = schema.ClassChangeReplace
				}
			})
			if got := immutableChanges(set, c); !slices.Equal(textsOf(got), test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

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
