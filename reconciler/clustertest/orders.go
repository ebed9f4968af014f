// Package clustertest has the cluster shop/orders, which the tests of most packages are
// about.
package clustertest

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// Orders is a cluster with defaults, changed by edits.
func Orders(edits ...func(*schema.EtcdCluster)) schema.EtcdCluster {
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

// SetVersion sets the release of etcd.
func SetVersion(v string) func(*schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) { c.Spec.Version = v }
}

// SetReplicas sets the number of members.
func SetReplicas(n int32) func(*schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) { c.Spec.Replicas = n }
}

// DualStack has IPv6 first, and pins the image.
func DualStack(c *schema.EtcdCluster) {
	c.Spec.Image.Digest = "sha256:" + strings.Repeat("0a", 32)
	c.Spec.Network.IPFamilyPolicy = corev1.IPFamilyPolicyRequireDualStack
	c.Spec.Network.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
}

// Pod is a pod template that was rendered, as the API server would have it.
func Pod(t testing.TB, rendered any) corev1.PodTemplateSpec {
	t.Helper()
	var made corev1.PodTemplateSpec
	text, err := json.Marshal(rendered)
	if err == nil {
		err = json.Unmarshal(text, &made)
	}
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// DisableTLS turns TLS off.
func DisableTLS(c *schema.EtcdCluster) { c.Spec.TLS.Mode = schema.TLSDisabled }

// StoreSecret is a Secret of the namespace shop that files may name for backups.
func StoreSecret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{naming.LabelUse: naming.UseBackups}}, Data: data}
}

// MountedSecrets are the volumes of a member with these certificates.
func MountedSecrets(server, peer string) []corev1.Volume {
	volume := func(name, secret string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}
	}
	return []corev1.Volume{{Name: "record"}, volume(naming.ServerTLSVolume, server), volume(naming.PeerTLSVolume, peer)}
}

// NamedTLS takes the certificates from Secrets.
func NamedTLS(c *schema.EtcdCluster) {
	c.Spec.TLS = schema.TLSSpec{Mode: schema.TLSSecrets, Secrets: schema.TLSSecretNames{Server: "their-server", Peer: "their-peer", Client: "their-client"}}
}

// Placed sets everything that a file may set.
func Placed(c *schema.EtcdCluster) {
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
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{naming.LabelCluster: "orders"}},
			}},
			PriorityClassName: "databases",
			SecurityContext:   &corev1.PodSecurityContext{FSGroup: new(int64(2000))},
			ImagePullSecrets:  []corev1.LocalObjectReference{{Name: "mirror"}},
		},
	}
}
