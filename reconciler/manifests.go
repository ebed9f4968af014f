package reconciler

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/quorate/quorate/schema"
)

// FieldManager is the name under which quorate applies every object.
const FieldManager = "quorate"

// DefaultRepository is where the etcd image comes from when neither the
// cluster nor the daemon names a repository.
const DefaultRepository = "quay.io/coreos/etcd"

// Labels and annotations that quorate reads back.
const (
	// LabelCluster marks everything that belongs to a cluster with its name.
	LabelCluster = "quorate.dev/cluster"
	// AnnotationTemplateHash stands on a pod and its template: what the pod was
	// made from, apart from the guard's image.
	AnnotationTemplateHash = "quorate.dev/template-hash"
	// AnnotationVersion stands on a pod and its template: the etcd version.
	AnnotationVersion = "quorate.dev/version"
)

// The ports of a member.
const (
	clientPort  = 2379
	peerPort    = 2380
	metricsPort = 2381
)

// RenderOptions is what the daemon adds to a cluster's file.
type RenderOptions struct {
	// Repository of the etcd image for clusters that name none. Default
	// DefaultRepository.
	Repository string
	// GuardImage is quorate's own image, which the guard runs. The caller keeps
	// the one that the live StatefulSet has, until a roll has another cause.
	GuardImage string
	// ClusterDomain is the cluster's DNS domain, for clusters that name none. The
	// manifests do without it: their names end in .svc and the pod's search path
	// adds the domain. It stands in certificates only.
	ClusterDomain string
	// Passing renders a release that the cluster only passes through on its way to
	// another: flags of the file that it does not take are left out.
	Passing bool
	// Partition is the lowest ordinal that gets the template; pods below it keep
	// the one they have.
	Partition int32
	// Claims is what the live StatefulSet asks for members' volumes; nil while
	// there is none. It cannot change while the StatefulSet lives.
	Claims *schema.StorageSpec
	// ClaimPrefix is the name of the claim template, and so begins the names of the
	// members' claims. Default defaultClaimPrefix.
	ClaimPrefix string
	// Replicas is how many pods there are to be now; nil for as many as the file
	// wants, which is what a cluster begins with.
	Replicas *int32
	// Disruptions is how many pods anybody else may stop at once. Nil for what the
	// file's number of members allows.
	Disruptions *int32
}

// replicas is how many pods there are to be now.
func (o RenderOptions) replicas(c schema.EtcdCluster) int32 {
	if o.Replicas == nil {
		return c.Spec.Replicas
	}
	return *o.Replicas
}

// claimPrefix is the name of the claim template.
func (o RenderOptions) claimPrefix() string { return cmp.Or(o.ClaimPrefix, defaultClaimPrefix) }

// Manifests are the objects of one cluster, ready for server-side apply.
type Manifests struct {
	Headless, Client *corev1ac.ServiceApplyConfiguration
	PDB              *policyv1ac.PodDisruptionBudgetApplyConfiguration
	StatefulSet      *appsv1ac.StatefulSetApplyConfiguration
	// TemplateHash is the hash that the pods of this rendering carry.
	TemplateHash string
}

// Render makes the objects of c. It is a pure function; c must have passed
// validation and have its defaults.
func Render(c schema.EtcdCluster, o RenderOptions) (Manifests, error) {
	if o.GuardImage == "" {
		return Manifests{}, fmt.Errorf("render %s: no image for the guard, start quorate with --guard-image", c.Metadata.Name)
	}
	template, hash, err := renderTemplate(c, o)
	if err != nil {
		return Manifests{}, fmt.Errorf("render %s: %w", c.Metadata.Name, err)
	}
	return Manifests{
		Headless:     renderHeadlessService(c),
		Client:       renderClientService(c),
		PDB:          renderBudget(c, o),
		StatefulSet:  renderStatefulSet(c, o, template),
		TemplateHash: hash,
	}, nil
}

// HeadlessServiceName is the Service that gives each member its DNS name.
func HeadlessServiceName(c schema.EtcdCluster) string { return c.Metadata.Name + "-peers" }

// ClientServiceName is the Service that clients of the cluster use.
func ClientServiceName(c schema.EtcdCluster) string { return c.Metadata.Name + "-client" }

// MemberName is the name of the member, and of the pod, with that ordinal.
func MemberName(c schema.EtcdCluster, ordinal int) string {
	return c.Metadata.Name + "-" + strconv.Itoa(ordinal)
}

// PeerURL is where a member's peers reach it.
func PeerURL(c schema.EtcdCluster, member string) string { return memberURL(c, member, peerPort) }

// ClientURL is where clients inside Kubernetes reach one member.
func ClientURL(c schema.EtcdCluster, member string) string { return memberURL(c, member, clientPort) }

func memberURL(c schema.EtcdCluster, member string, port int) string {
	return fmt.Sprintf("%s://%s:%d", urlScheme(c), memberHost(c, member), port)
}

// memberHost is the member's DNS name, without the cluster's domain.
func memberHost(c schema.EtcdCluster, member string) string {
	return member + "." + HeadlessServiceName(c) + "." + c.Metadata.Namespace + ".svc"
}

func urlScheme(c schema.EtcdCluster) string {
	if usesTLS(c) {
		return "https"
	}
	return "http"
}

// usesTLS takes everything but an explicit Disabled for TLS.
func usesTLS(c schema.EtcdCluster) bool { return c.Spec.TLS.Mode != schema.TLSDisabled }

// PodSelector selects the member pods of c. A StatefulSet's selector is
// immutable: it holds only what never changes for a cluster.
func PodSelector(c schema.EtcdCluster) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name": "etcd",
		LabelCluster:             c.Metadata.Name,
	}
}

// OwnLabels are the labels that quorate puts on everything it makes for c.
func OwnLabels(c schema.EtcdCluster) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       "etcd",
		"app.kubernetes.io/instance":   c.Metadata.Name,
		"app.kubernetes.io/managed-by": "quorate",
		LabelCluster:                   c.Metadata.Name,
	}
}

// ObjectLabels are OwnLabels and those of the cluster's metadata. They are for
// objects only: on the pod template a new label would restart every member,
// and on the volume claim template it would be refused.
func ObjectLabels(c schema.EtcdCluster) map[string]string {
	return overlayMaps(c.Metadata.Labels, OwnLabels(c))
}

// overlayMaps is a new map in which later maps win.
func overlayMaps(layers ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, layer := range layers {
		maps.Copy(out, layer)
	}
	return out
}

func renderHeadlessService(c schema.EtcdCluster) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(HeadlessServiceName(c), c.Metadata.Namespace).
		WithLabels(ObjectLabels(c)).
		WithSpec(serviceSpec(c).
			WithClusterIP(corev1.ClusterIPNone).
			// Members find each other before any of them is ready.
			WithPublishNotReadyAddresses(true).
			WithPorts(servicePort("client", clientPort), servicePort("peer", peerPort), servicePort("metrics", metricsPort)))
}

func renderClientService(c schema.EtcdCluster) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(ClientServiceName(c), c.Metadata.Namespace).
		WithLabels(ObjectLabels(c)).
		WithSpec(serviceSpec(c).
			WithPorts(servicePort("client", clientPort)))
}

// serviceSpec is what both Services have in common: whom they lead to, and the
// address families, where the file names some.
func serviceSpec(c schema.EtcdCluster) *corev1ac.ServiceSpecApplyConfiguration {
	spec := corev1ac.ServiceSpec().WithType(corev1.ServiceTypeClusterIP).WithSelector(PodSelector(c))
	if policy := c.Spec.Network.IPFamilyPolicy; policy != "" {
		spec.WithIPFamilyPolicy(policy)
	}
	return spec.WithIPFamilies(c.Spec.Network.IPFamilies...)
}

// servicePort names the protocol although TCP is the default: it is part of the
// key by which the API server knows the port.
func servicePort(name string, port int32) *corev1ac.ServicePortApplyConfiguration {
	return corev1ac.ServicePort().WithName(name).WithProtocol(corev1.ProtocolTCP).
		WithPort(port).WithTargetPort(intstr.FromString(name))
}

// disruptionsOf is how many of so many voters anybody else may stop at once: one,
// and none where that would cost the quorum.
//
//	voters        1  2  3  4  5  6  7
//	disruptions   0  0  1  1  1  1  1
//
// The budget of a single member allows no eviction at all: a drained node would
// be a silent outage, so a person has to move such a member on purpose.
func disruptionsOf(voters int) int32 { return min(1, int32(max(voters-1, 0)/2)) }

// renderBudget has all pods but those that may be stopped stay. It counts pods
// that are no voters, too: who is stopped might be a voter while a learner is
// ready. A learner that is not, as from etcd 3.6 on, only makes it stricter.
func renderBudget(c schema.EtcdCluster, o RenderOptions) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	allowed := disruptionsOf(int(c.Spec.Replicas))
	if o.Disruptions != nil {
		allowed = *o.Disruptions
	}
	return policyv1ac.PodDisruptionBudget(c.Metadata.Name, c.Metadata.Namespace).
		WithLabels(ObjectLabels(c)).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMinAvailable(intstr.FromInt32(max(o.replicas(c)-allowed, 0))).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(PodSelector(c))))
}

func renderStatefulSet(c schema.EtcdCluster, o RenderOptions, template *corev1ac.PodTemplateSpecApplyConfiguration) *appsv1ac.StatefulSetApplyConfiguration {
	set := appsv1ac.StatefulSet(c.Metadata.Name, c.Metadata.Namespace).
		WithLabels(ObjectLabels(c))
	if len(c.Metadata.Annotations) > 0 {
		set.WithAnnotations(c.Metadata.Annotations)
	}
	return set.WithSpec(appsv1ac.StatefulSetSpec().
		WithReplicas(o.replicas(c)).
		WithServiceName(HeadlessServiceName(c)).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(PodSelector(c))).
		// A first start needs a quorum of members at once, and a member that
		// cannot start must not keep the others from it.
		WithPodManagementPolicy(appsv1.ParallelPodManagement).
		WithUpdateStrategy(appsv1ac.StatefulSetUpdateStrategy().
			WithType(appsv1.RollingUpdateStatefulSetStrategyType).
			WithRollingUpdate(appsv1ac.RollingUpdateStatefulSetStrategy().WithPartition(o.Partition))).
		// Data outlives the StatefulSet and every scaling of it.
		WithPersistentVolumeClaimRetentionPolicy(appsv1ac.StatefulSetPersistentVolumeClaimRetentionPolicy().
			WithWhenDeleted(appsv1.RetainPersistentVolumeClaimRetentionPolicyType).
			WithWhenScaled(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)).
		WithMinReadySeconds(0).
		WithRevisionHistoryLimit(10).
		WithTemplate(template).
		WithVolumeClaimTemplates(renderClaimTemplate(c, o)))
}

// renderClaimTemplate names the volume mode although Filesystem is the default:
// claim templates are owned as one value, defaults included.
func renderClaimTemplate(c schema.EtcdCluster, o RenderOptions) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	storage := c.Spec.Storage
	if o.Claims != nil {
		storage = *o.Claims
	}
	spec := corev1ac.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithVolumeMode(corev1.PersistentVolumeFilesystem).
		WithResources(corev1ac.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: storage.Size}))
	spec.StorageClassName = storage.StorageClassName
	claim := corev1ac.PersistentVolumeClaim(o.claimPrefix(), "").WithLabels(OwnLabels(c)).WithSpec(spec)
	// A client that speaks protobuf sees neither of the two in a nested object.
	claim.Namespace, claim.Kind, claim.APIVersion = nil, nil, nil
	return claim
}
