package reconciler

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/schema"
)

var updateManifests = flag.Bool("update-manifests", false, "rewrite testdata/manifests-*.yaml")

// ordersCluster is a cluster with defaults, changed by edits.
func ordersCluster(edits ...func(*schema.EtcdCluster)) schema.EtcdCluster {
	c := schema.EtcdCluster{
		TypeMeta: metav1.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindCluster},
		Metadata: schema.Metadata{Name: "orders", Namespace: "shop"},
		Spec: schema.ClusterSpec{
			Version:  "3.6.16",
			Replicas: 3,
			Storage:  schema.StorageSpec{Size: resource.MustParse("8Gi")},
			Etcd:     schema.EtcdSpec{AutoCompaction: schema.AutoCompaction{Mode: "periodic"}},
			TLS:      schema.TLSSpec{Mode: schema.TLSManaged},
			Mode:     schema.ModeEnforce,
		},
	}
	for _, edit := range edits {
		edit(&c)
	}
	return c
}

func ordersOptions() RenderOptions {
	return RenderOptions{GuardImage: "ghcr.io/quorate/quorate:v0.1.0", ClusterDomain: "cluster.local"}
}

// placedCluster sets everything that a file may set.
func placedCluster(c *schema.EtcdCluster) {
	class := "fast"
	quota := resource.MustParse("4Gi")
	c.Metadata.Labels = map[string]string{"team": "checkout"}
	c.Metadata.Annotations = map[string]string{"example.com/owner": "checkout@example.com"}
	c.Spec.Replicas = 5
	c.Spec.Image.Repository = "registry:5000/mirror/etcd"
	c.Spec.Storage.StorageClassName = &class
	c.Spec.Etcd = schema.EtcdSpec{
		QuotaBackendBytes: &quota,
		AutoCompaction:    schema.AutoCompaction{Mode: "periodic", Retention: "8h"},
		Options:           map[string]string{"heartbeat-interval": "200", "election-timeout": "2000"},
	}
	c.Spec.PodTemplate = schema.PodTemplate{
		Metadata: schema.PodMetadata{
			Labels:      map[string]string{"cost-centre": "42"},
			Annotations: map[string]string{"example.com/scrape": "true"},
		},
		Spec: schema.PodSpec{
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi")},
				Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2500m"), corev1.ResourceMemory: resource.MustParse("2Gi")},
			},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"nvme"}}},
				}}},
			}},
			NodeSelector: map[string]string{"kubernetes.io/arch": "amd64"},
			Tolerations:  []corev1.Toleration{{Key: "etcd", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{LabelCluster: "orders"}},
			}},
			PriorityClassName: "databases",
			SecurityContext:   &corev1.PodSecurityContext{FSGroup: new(int64(2000))},
			ImagePullSecrets:  []corev1.LocalObjectReference{{Name: "mirror"}},
		},
	}
}

func setVersion(v string) func(*schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) { c.Spec.Version = v }
}

func setReplicas(n int32) func(*schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) { c.Spec.Replicas = n }
}

// dualStack has IPv6 first, and pins the image.
func dualStack(c *schema.EtcdCluster) {
	c.Spec.Image.Digest = "sha256:" + strings.Repeat("0a", 32)
	c.Spec.Network.IPFamilyPolicy = corev1.IPFamilyPolicyRequireDualStack
	c.Spec.Network.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
}

func disableTLS(c *schema.EtcdCluster) { c.Spec.TLS.Mode = schema.TLSDisabled }

// renderYAML is every object of a cluster as one YAML stream.
func renderYAML(t *testing.T, c schema.EtcdCluster) string {
	t.Helper()
	m := mustRender(t, c, ordersOptions())
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

func mustRender(t *testing.T, c schema.EtcdCluster, o RenderOptions) Manifests {
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
		"default":     ordersCluster(),
		"v3.4":        ordersCluster(setVersion("3.4.34")),
		"v3.5":        ordersCluster(setVersion("3.5.35")),
		"single":      ordersCluster(setReplicas(1)),
		"tls-off":     ordersCluster(disableTLS),
		"placed":      ordersCluster(placedCluster),
		"placed-v3.4": ordersCluster(placedCluster, setVersion("3.4.34")),
		"tls-secrets": ordersCluster(namedTLS),
		"dual-stack":  ordersCluster(dualStack),
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

func TestTemplateHash(t *testing.T) {
	base := mustRender(t, ordersCluster(), ordersOptions()).TemplateHash
	otherGuard, otherPartition := ordersOptions(), ordersOptions()
	otherGuard.GuardImage = "ghcr.io/quorate/quorate:v9.9.9"
	otherPartition.Partition = 2
	for _, test := range []struct {
		name    string
		cluster schema.EtcdCluster
		options RenderOptions
		same    bool
	}{
		{"again", ordersCluster(), ordersOptions(), true},
		{"quorate upgraded", ordersCluster(), otherGuard, true},
		{"roll under way", ordersCluster(), otherPartition, true},
		{"scaled", ordersCluster(setReplicas(5)), ordersOptions(), true},
		{"object labelled", ordersCluster(func(c *schema.EtcdCluster) {
			c.Metadata.Labels = map[string]string{"team": "checkout"}
			c.Metadata.Annotations = map[string]string{"a": "b"}
		}), ordersOptions(), true},
		{"version", ordersCluster(setVersion("3.6.15")), ordersOptions(), false},
		{"digest", ordersCluster(func(c *schema.EtcdCluster) { c.Spec.Image.Digest = "sha256:" + strings.Repeat("0a", 32) }), ordersOptions(), false},
		{"domain", ordersCluster(func(c *schema.EtcdCluster) { c.Spec.Network.ClusterDomain = "example.org" }), ordersOptions(), true},
		{"IPv4 alone, in words", ordersCluster(func(c *schema.EtcdCluster) {
			c.Spec.Network.IPFamilyPolicy, c.Spec.Network.IPFamilies = corev1.IPFamilyPolicySingleStack, []corev1.IPFamily{corev1.IPv4Protocol}
		}), ordersOptions(), true},
		{"a second family where there is one", ordersCluster(func(c *schema.EtcdCluster) {
			c.Spec.Network.IPFamilyPolicy = corev1.IPFamilyPolicyPreferDualStack
		}), ordersOptions(), true},
		{"IPv6", ordersCluster(func(c *schema.EtcdCluster) { c.Spec.Network.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} }), ordersOptions(), false},
		{"both families", ordersCluster(func(c *schema.EtcdCluster) {
			c.Spec.Network.IPFamilyPolicy = corev1.IPFamilyPolicyRequireDualStack
		}), ordersOptions(), false},
		{"pod labelled", ordersCluster(func(c *schema.EtcdCluster) {
			c.Spec.PodTemplate.Metadata.Labels = map[string]string{"team": "checkout"}
		}), ordersOptions(), false},
		{"resources", ordersCluster(func(c *schema.EtcdCluster) {
			c.Spec.PodTemplate.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}), ordersOptions(), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := mustRender(t, test.cluster, test.options)
			if (m.TemplateHash == base) != test.same {
				t.Errorf("hash %s, base %s, want same: %v", m.TemplateHash, base, test.same)
			}
			template := m.StatefulSet.Spec.Template
			if got := template.Annotations[AnnotationTemplateHash]; got != m.TemplateHash || len(got) != 12 {
				t.Errorf("the pods carry %q, the result says %q", got, m.TemplateHash)
			}
			if got := *template.Spec.InitContainers[0].Image; got != test.options.GuardImage {
				t.Errorf("the guard runs %s, want %s", got, test.options.GuardImage)
			}
		})
	}
}

func TestUserDoesNotOverrideOwnLabels(t *testing.T) {
	m := mustRender(t, ordersCluster(func(c *schema.EtcdCluster) {
		c.Metadata.Labels = map[string]string{LabelCluster: "other"}
		c.Spec.PodTemplate.Metadata.Labels = map[string]string{LabelCluster: "other"}
	}), ordersOptions())
	if m.StatefulSet.Labels[LabelCluster] != "orders" || m.StatefulSet.Spec.Template.Labels[LabelCluster] != "orders" {
		t.Error("a user's label took the place of the one that the selectors need")
	}
}

func TestBudgetKeepsQuorum(t *testing.T) {
	want := []int{1, 2, 2, 3, 4, 5, 6}
	for i := range want {
		m := mustRender(t, ordersCluster(setReplicas(int32(i+1))), ordersOptions())
		if got := m.PDB.Spec.MinAvailable.IntValue(); got != want[i] {
			t.Errorf("%d members: minAvailable %d, want %d", i+1, got, want[i])
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
	m := mustRender(t, ordersCluster(placedCluster), ordersOptions())
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

func TestRenderRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		cluster schema.EtcdCluster
		options RenderOptions
		say     string
	}{
		"no guard image": {ordersCluster(), RenderOptions{}, "--guard-image"},
		"bad version":    {ordersCluster(setVersion("three")), ordersOptions(), "three"},
		"odd quota": {ordersCluster(func(c *schema.EtcdCluster) {
			quota := resource.MustParse("500m")
			c.Spec.Etcd.QuotaBackendBytes = &quota
		}), ordersOptions(), "quotaBackendBytes"},
		"flag of another release": {ordersCluster(func(c *schema.EtcdCluster) {
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
