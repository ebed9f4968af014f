package manifests

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

var updateManifests = flag.Bool("update-manifests", false, "rewrite testdata/manifests-*.yaml")

func ordersOptions() Options {
	return Options{GuardImage: "ghcr.io/quorate/quorate:v0.1.0", ClusterDomain: "cluster.local"}
}

// renderYAML is every object of a cluster as one YAML stream.
func renderYAML(t *testing.T, c schema.EtcdCluster) string {
	t.Helper()
	m := MustRender(t, c, ordersOptions())
	var docs []string
	for _, object := range []any{m.Headless, m.Client, m.PDB, m.StatefulSet} {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(text))
	}
	return strings.Join(docs, "---\n")
}

func MustRender(t *testing.T, c schema.EtcdCluster, o Options) Manifests {
	t.Helper()
	m, err := Render(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRenderGolden holds the manifests byte for byte: a change of the template
// restarts every member of every cluster, so it must be seen in review.
func TestRenderGolden(t *testing.T) {
	for name, c := range map[string]schema.EtcdCluster{
		"default":     clustertest.Orders(),
		"v3.4":        clustertest.Orders(clustertest.SetVersion("3.4.34")),
		"v3.5":        clustertest.Orders(clustertest.SetVersion("3.5.35")),
		"single":      clustertest.Orders(clustertest.SetReplicas(1)),
		"tls-off":     clustertest.Orders(clustertest.DisableTLS),
		"placed":      clustertest.Orders(clustertest.Placed),
		"placed-v3.4": clustertest.Orders(clustertest.Placed, clustertest.SetVersion("3.4.34")),
		"tls-secrets": clustertest.Orders(clustertest.NamedTLS),
		"dual-stack":  clustertest.Orders(clustertest.DualStack),
	} {
		t.Run(name, func(t *testing.T) {
			got := renderYAML(t, c)
			path := filepath.Join("testdata", "manifests-"+name+".yaml")
			if *updateManifests {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs; if every member may restart for it, run the test with -update-manifests. Got:\n%s", path, got)
			}
		})
	}
}

// 560: from the first change of the authorities on, members read what they trust from a Secret that
// is named by its content, and what the others mount stays.
func TestTrustIsMountedFromASecretOfItsOwn(t *testing.T) {
	with := ordersOptions()
	with.Trust = "orders-trust-0123456789ab"
	m := MustRender(t, clustertest.Orders(), with)
	text, err := yaml.Marshal(m.StatefulSet)
	if err != nil {
		t.Fatal(err)
	}
	compareManifests(t, filepath.Join("testdata", "manifests-trust.yaml"), string(text))
	if m.TemplateHash == MustRender(t, clustertest.Orders(), ordersOptions()).TemplateHash {
		t.Error("the template is the same: no member would restart")
	}
	plain := clustertest.Orders(clustertest.DisableTLS)
	if MustRender(t, plain, with).TemplateHash != MustRender(t, plain, ordersOptions()).TemplateHash {
		t.Error("a cluster in clear text mounts it")
	}
}

func TestTemplateHash(t *testing.T) {
	base := MustRender(t, clustertest.Orders(), ordersOptions()).TemplateHash
	otherGuard, otherPartition, startup := ordersOptions(), ordersOptions(), ordersOptions()
	startup.StartupProbe = true
	otherGuard.GuardImage = "ghcr.io/quorate/quorate:v9.9.9"
	otherPartition.Partition = 2
	for _, test := range []struct {
		name    string
		cluster schema.EtcdCluster
		options Options
		same    bool
	}{
		{"again", clustertest.Orders(), ordersOptions(), true},
		{"quorate upgraded", clustertest.Orders(), otherGuard, true},
		{"startup probe kept", clustertest.Orders(), startup, true},
		{"roll under way", clustertest.Orders(), otherPartition, true},
		{"scaled", clustertest.Orders(clustertest.SetReplicas(5)), ordersOptions(), true},
		{"object labelled", clustertest.Orders(func(c *schema.EtcdCluster) {
			c.Metadata.Labels = map[string]string{"team": "checkout"}
			c.Metadata.Annotations = map[string]string{"a": "b"}
		}), ordersOptions(), true},
		{"version", clustertest.Orders(clustertest.SetVersion("3.6.15")), ordersOptions(), false},
		{"digest", clustertest.Orders(func(c *schema.EtcdCluster) { c.Spec.Image.Digest = "sha256:" + strings.Repeat("0a", 32) }), ordersOptions(), false},
		{"domain", clustertest.Orders(func(c *schema.EtcdCluster) { c.Spec.Network.ClusterDomain = "example.org" }), ordersOptions(), true},
		{"IPv4 alone, in words", clustertest.Orders(func(c *schema.EtcdCluster) {
			c.Spec.Network.IPFamilyPolicy, c.Spec.Network.IPFamilies = corev1.IPFamilyPolicySingleStack, []corev1.IPFamily{corev1.IPv4Protocol}
		}), ordersOptions(), true},
		{"a second family where there is one", clustertest.Orders(func(c *schema.EtcdCluster) {
			c.Spec.Network.IPFamilyPolicy = corev1.IPFamilyPolicyPreferDualStack
		}), ordersOptions(), true},
		{"IPv6", clustertest.Orders(func(c *schema.EtcdCluster) { c.Spec.Network.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} }), ordersOptions(), false},
		{"both families", clustertest.Orders(func(c *schema.EtcdCluster) {
			c.Spec.Network.IPFamilyPolicy = corev1.IPFamilyPolicyRequireDualStack
		}), ordersOptions(), false},
		{"pod labelled", clustertest.Orders(func(c *schema.EtcdCluster) {
			c.Spec.PodTemplate.Metadata.Labels = map[string]string{"team": "checkout"}
		}), ordersOptions(), false},
		{"resources", clustertest.Orders(func(c *schema.EtcdCluster) {
			c.Spec.Etcd.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}), ordersOptions(), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := MustRender(t, test.cluster, test.options)
			if (m.TemplateHash == base) != test.same {
				t.Errorf("hash %s, base %s, want same: %v", m.TemplateHash, base, test.same)
			}
			template := m.StatefulSet.Spec.Template
			if got := template.Annotations[naming.AnnotationTemplateHash]; got != m.TemplateHash || len(got) != 12 {
				t.Errorf("the pods carry %q, the result says %q", got, m.TemplateHash)
			}
			if got := *template.Spec.InitContainers[0].Image; got != test.options.GuardImage {
				t.Errorf("the guard runs %s, want %s", got, test.options.GuardImage)
			}
			if got := template.Spec.Containers[0].StartupProbe != nil; got != test.options.StartupProbe {
				t.Errorf("etcd has a startup probe: %v, want %v", got, test.options.StartupProbe)
			}
		})
	}
}

func TestUserDoesNotOverrideOwnLabels(t *testing.T) {
	m := MustRender(t, clustertest.Orders(func(c *schema.EtcdCluster) {
		c.Metadata.Labels = map[string]string{naming.LabelCluster: "other"}
		c.Spec.PodTemplate.Metadata.Labels = map[string]string{naming.LabelCluster: "other"}
	}), ordersOptions())
	if m.StatefulSet.Labels[naming.LabelCluster] != "orders" || m.StatefulSet.Spec.Template.Labels[naming.LabelCluster] != "orders" {
		t.Error("a user's label took the place of the one that the selectors need")
	}
}

func TestBudgetKeepsQuorum(t *testing.T) {
	want := []int{1, 2, 2, 3, 4, 5, 6}
	for i := range want {
		m := MustRender(t, clustertest.Orders(clustertest.SetReplicas(int32(i+1))), ordersOptions())
		if got := m.PDB.Spec.MinAvailable.IntValue(); got != want[i] {
			t.Errorf("%d members: minAvailable %d, want %d", i+1, got, want[i])
		}
	}
}

// 555: a drain takes the pod of a member that has left, and the budget keeps every other one.
func TestTheBudgetLeavesOutAnEvictablePod(t *testing.T) {
	o := ordersOptions()
	o.Replicas, o.Disruptions, o.Evictable = new(int32(2)), new(int32(0)), "orders-0"
	budget := MustRender(t, clustertest.Orders(clustertest.SetReplicas(1)), o).PDB.Spec
	if got := budget.MinAvailable.IntValue(); got != 1 {
		t.Errorf("minAvailable %d, want 1", got)
	}
	text, err := json.Marshal(budget.Selector)
	if err != nil {
		t.Fatal(err)
	}
	var selector metav1.LabelSelector
	if err := json.Unmarshal(text, &selector); err != nil {
		t.Fatal(err)
	}
	keeps, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"orders-0": false, "orders-1": true} {
		pod := naming.OverlayMaps(naming.PodSelector(clustertest.Orders()), map[string]string{appsv1.StatefulSetPodNameLabel: name})
		if got := keeps.Matches(labels.Set(pod)); got != want {
			t.Errorf("the budget keeps %s: %t", name, got)
		}
	}
}

func TestGoMaxProcs(t *testing.T) {
	for limit, want := range map[string]int64{"": 0, "100m": 1, "1": 1, "1900m": 1, "2": 2, "3500m": 3} {
		var r corev1.ResourceRequirements
		if limit != "" {
			r.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(limit)}
		}
		if got := goMaxProcs(r); got != want {
			t.Errorf("limit %q: GOMAXPROCS %d, want %d", limit, got, want)
		}
	}
}

func TestNoSettingIsBothFlagAndEnvironment(t *testing.T) {
	m := MustRender(t, clustertest.Orders(clustertest.Placed), ordersOptions())
	etcd := m.StatefulSet.Spec.Template.Spec.Containers[0]
	for _, e := range etcd.Env {
		name, isEtcd := strings.CutPrefix(*e.Name, "ETCD_")
		if !isEtcd {
			continue
		}
		prefix := "--" + strings.ToLower(strings.ReplaceAll(name, "_", "-")) + "="
		if slices.ContainsFunc(etcd.Args, func(arg string) bool { return strings.HasPrefix(arg, prefix) }) {
			t.Errorf("%s is also the flag %s: etcd refuses to start", *e.Name, prefix)
		}
	}
}

// 558: while one of two members leaves, the client Service leads to the other one alone.
func TestTheClientServiceLeadsToTheMemberThatStays(t *testing.T) {
	c, o := clustertest.Orders(clustertest.SetReplicas(1)), ordersOptions()
	all, err := Render(c, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Serves = "orders-1"
	one, err := Render(c, o)
	if err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(all.Client.Spec.Selector)
	want["statefulset.kubernetes.io/pod-name"] = "orders-1"
	if !maps.Equal(one.Client.Spec.Selector, want) {
		t.Errorf("clients are led to %v, want %v", one.Client.Spec.Selector, want)
	}
	if !maps.Equal(one.Headless.Spec.Selector, all.Headless.Spec.Selector) {
		t.Errorf("members find only %v", one.Headless.Spec.Selector)
	}
	if one.TemplateHash != all.TemplateHash {
		t.Error("the template is another one, and the member would restart")
	}
}

func TestRenderRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		cluster schema.EtcdCluster
		options Options
		say     string
	}{
		"no guard image": {clustertest.Orders(), Options{}, "--guard-image"},
		"bad version":    {clustertest.Orders(clustertest.SetVersion("three")), ordersOptions(), "three"},
		"odd quota": {clustertest.Orders(func(c *schema.EtcdCluster) {
			quota := resource.MustParse("500m")
			c.Spec.Etcd.QuotaBackendBytes = &quota
		}), ordersOptions(), "quotaBackendBytes"},
		"flag of another release": {clustertest.Orders(func(c *schema.EtcdCluster) {
			c.Spec.Etcd.Options = map[string]string{"enable-v2": "true"}
		}), ordersOptions(), "enable-v2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Render(test.cluster, test.options)
			if err == nil || !strings.Contains(err.Error(), test.say) {
				t.Errorf("got error %v, want one with %q", err, test.say)
			}
		})
	}
}
