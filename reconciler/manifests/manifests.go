// Package manifests renders a cluster's file to Kubernetes objects. It is pure: what the
// daemon knows beside the file comes in Options. A changed pod template restarts every
// member of every cluster: golden files hold it byte for byte.
package manifests

import (
	"cmp"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// DefaultRepository is where the etcd image comes from when neither the
// cluster nor the daemon names a repository.
const DefaultRepository = "quay.io/coreos/etcd"

// Options is what the daemon adds to a cluster's file.
type Options struct {
	// Repository of the etcd image for clusters that name none. Default
	// DefaultRepository.
	Repository string
	// GuardImage is quorate's own image, which the guard runs. The caller keeps
	// the one that the live StatefulSet has, until a roll has another cause.
	GuardImage string
	// StartupProbe gives etcd a startup probe, which the caller keeps like GuardImage.
	StartupProbe bool
	// ClusterDomain is the cluster's DNS domain, for clusters that name none. The
	// manifests do without it: their names end in .svc and the pod's search path
	// adds the domain. It is in certificates only.
	ClusterDomain string
	// Passing renders a release that the cluster only passes through before
	// another: flags of the file that it does not take are left out.
	Passing bool
	// Partition is the lowest ordinal that gets the template; pods below it keep
	// the one they have.
	Partition int32
	// Claims is what the live StatefulSet asks for members' volumes; nil while
	// there is none. It cannot change while the StatefulSet lives.
	Claims *schema.StorageSpec
	// ClaimPrefix is the name of the claim template, and so begins the names of the
	// members' claims. Default naming.ClaimPrefix.
	ClaimPrefix string
	// Replicas is how many pods there should be now; nil for as many as the file
	// wants, which is what a cluster begins with.
	Replicas *int32
	// Also is the mode of tls that members speak besides their own one while it changes: TLS
	// beside plain text, or plain text beside TLS. Empty for none.
	Also schema.TLSMode
	// Mixed says that the members trust certificates of another program besides quorate's.
	Mixed bool
	// Trust is the Secret with what the members trust. Empty for what is in the Secrets of
	// their certificates, which is so until the authorities change for the first time.
	Trust string
	// Disruptions is how many pods others may stop at once. Nil for what the
	// file's number of members allows.
	Disruptions *int32
	// Evictable is the pod that the budget does not keep, "" for none: its member has left, and
	// a drain of its node may delete it.
	Evictable string
	// Serves is the only member to which the client Service leads, "" for all that are ready.
	Serves string
}

// PodCount is how many pods there should be now.
func (o Options) PodCount(c schema.EtcdCluster) int32 {
	if o.Replicas == nil {
		return c.Spec.Replicas
	}
	return *o.Replicas
}

// claimPrefix is the name of the claim template.
func (o Options) claimPrefix() string { return cmp.Or(o.ClaimPrefix, naming.ClaimPrefix) }

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
func Render(c schema.EtcdCluster, o Options) (Manifests, error) {
	if o.GuardImage == "" {
		return Manifests{}, fmt.Errorf("render %s: no image for the guard, start quorate with --guard-image", c.Metadata.Name)
	}
	template, hash, err := RenderTemplate(c, o)
	if err != nil {
		return Manifests{}, fmt.Errorf("render %s: %w", c.Metadata.Name, err)
	}
	return Manifests{
		Headless:     renderHeadlessService(c),
		Client:       renderClientService(c, o),
		PDB:          renderBudget(c, o),
		StatefulSet:  renderStatefulSet(c, o, template),
		TemplateHash: hash,
	}, nil
}

func renderHeadlessService(c schema.EtcdCluster) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(naming.HeadlessService(c.Metadata.Name), c.Metadata.Namespace).
		WithLabels(naming.ObjectLabels(c)).
		WithSpec(serviceSpec(c).
			WithClusterIP(corev1.ClusterIPNone).
			// Members find each other before any of them is ready.
			WithPublishNotReadyAddresses(true).
			WithPorts(servicePort("client", naming.ClientPort), servicePort("peer", naming.PeerPort), servicePort("metrics", naming.MetricsPort)))
}

func renderClientService(c schema.EtcdCluster, o Options) *corev1ac.ServiceApplyConfiguration {
	service := corev1ac.Service(naming.ClientService(c.Metadata.Name), c.Metadata.Namespace).
		WithLabels(naming.ObjectLabels(c)).
		WithSpec(serviceSpec(c).
			WithPorts(servicePort("client", naming.ClientPort)))
	if o.Serves != "" {
		service.Spec.WithSelector(map[string]string{appsv1.StatefulSetPodNameLabel: o.Serves})
	}
	var ignored, reported []string
	for _, d := range c.Spec.Drift.Ignore {
		ignored = append(ignored, d.Path)
		if d.Report {
			reported = append(reported, d.Path)
		}
	}
	for annotation, paths := range map[string][]string{naming.AnnotationIgnored: ignored, naming.AnnotationReported: reported} {
		if len(paths) > 0 {
			service.WithAnnotations(map[string]string{annotation: strings.Join(paths, " ")})
		}
	}
	return service
}

// serviceSpec is what both Services have in common: whom they lead to, and the
// address families, where the file names some.
func serviceSpec(c schema.EtcdCluster) *corev1ac.ServiceSpecApplyConfiguration {
	spec := corev1ac.ServiceSpec().WithType(corev1.ServiceTypeClusterIP).WithSelector(naming.PodSelector(c))
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

// Disruptions is how many of so many voters others may stop at once: one,
// and none where that would cost the quorum.
//
//	voters        1  2  3  4  5  6  7
//	disruptions   0  0  1  1  1  1  1
//
// The budget of a single member allows no eviction at all: a drained node would
// be a silent outage, so a person has to move such a member on purpose.
func Disruptions(voters int) int32 { return min(1, int32(max(voters-1, 0)/2)) }

// renderBudget has all pods but those that may be stopped stay. It counts pods
// that are no voters, too: the stopped one might be a voter while a learner is
// ready. A learner that is not, as from etcd 3.6 on, only makes it stricter. The API server grants
// each eviction of a pod that no budget selects.
func renderBudget(c schema.EtcdCluster, o Options) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	allowed := Disruptions(int(c.Spec.Replicas))
	if o.Disruptions != nil {
		allowed = *o.Disruptions
	}
	kept, selector := o.PodCount(c), metav1ac.LabelSelector().WithMatchLabels(naming.PodSelector(c))
	if o.Evictable != "" {
		kept--
		selector.WithMatchExpressions(metav1ac.LabelSelectorRequirement().
			WithKey(appsv1.StatefulSetPodNameLabel).WithOperator(metav1.LabelSelectorOpNotIn).WithValues(o.Evictable))
	}
	return policyv1ac.PodDisruptionBudget(c.Metadata.Name, c.Metadata.Namespace).
		WithLabels(naming.ObjectLabels(c)).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMinAvailable(intstr.FromInt32(max(kept-allowed, 0))).
			WithSelector(selector))
}

func renderStatefulSet(c schema.EtcdCluster, o Options, template *corev1ac.PodTemplateSpecApplyConfiguration) *appsv1ac.StatefulSetApplyConfiguration {
	set := appsv1ac.StatefulSet(c.Metadata.Name, c.Metadata.Namespace).
		WithLabels(naming.ObjectLabels(c))
	if len(c.Metadata.Annotations) > 0 {
		set.WithAnnotations(c.Metadata.Annotations)
	}
	return set.WithSpec(appsv1ac.StatefulSetSpec().
		WithReplicas(o.PodCount(c)).
		WithServiceName(naming.HeadlessService(c.Metadata.Name)).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(naming.PodSelector(c))).
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
func renderClaimTemplate(c schema.EtcdCluster, o Options) *corev1ac.PersistentVolumeClaimApplyConfiguration {
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
	claim := corev1ac.PersistentVolumeClaim(o.claimPrefix(), "").WithLabels(naming.OwnLabels(c)).WithSpec(spec)
	// A client that speaks protobuf sees neither of the two in a nested object.
	claim.Namespace, claim.Kind, claim.APIVersion = nil, nil, nil
	return claim
}
