package schema

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// APIVersion is the group and version of every kind in this package.
const APIVersion = Group + "/v1alpha1"

// KindCluster is the kind of an EtcdCluster document.
const KindCluster = "EtcdCluster"

// EtcdCluster declares one etcd cluster.
type EtcdCluster struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata names the cluster. Only name, namespace, labels and annotations
	// may be written; the namespace defaults to "default".
	Metadata Metadata `json:"metadata"`
	// Spec is what the cluster should be.
	Spec ClusterSpec `json:"spec"`
}

// Metadata is the part of Kubernetes object metadata that a file may set.
type Metadata struct {
	// Name is a DNS label of at most 40 characters: Kubernetes appends to it to
	// name pods and volumes, and those names end in DNS labels of 63.
	Name string `json:"name"`
	// Namespace is where the cluster's objects live. Default "default".
	Namespace string `json:"namespace,omitempty"`
	// Labels are copied to every object that quorate makes for the cluster. The
	// prefixes quorate.dev/ and app.kubernetes.io/ are reserved.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are copied to the StatefulSet. The prefix quorate.dev/ is
	// reserved.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ClusterSpec is the desired state of one cluster.
type ClusterSpec struct {
	// Version is the etcd release, as semantic version without a leading v,
	// major 3 only, for example "3.6.16". It names the image tag v3.6.16.
	Version string `json:"version"`
	// Replicas is the number of voting members: 1 to 7, odd numbers advised.
	// Immutable for now.
	Replicas int32 `json:"replicas"`
	// Image says where the etcd image is pulled from.
	Image ImageSpec `json:"image,omitzero"`
	// Storage is the volume of each member. Immutable for now.
	Storage StorageSpec `json:"storage"`
	// PodTemplate adds to the pods that quorate renders.
	PodTemplate PodTemplate `json:"podTemplate,omitzero"`
	// Etcd holds the settings of the etcd process.
	Etcd EtcdSpec `json:"etcd,omitzero"`
	// TLS says how traffic of clients and peers is protected. Immutable for now.
	TLS TLSSpec `json:"tls,omitzero"`
	// Backup says where backups of this cluster go.
	Backup BackupSpec `json:"backup,omitzero"`
	// Upgrade sets the pace and the safety net of version changes.
	Upgrade UpgradeSpec `json:"upgrade,omitzero"`
	// Mode is Enforce (default) or Observe: plan and report, touch nothing.
	Mode Mode `json:"mode,omitempty"`
}

// ImageSpec names the etcd image.
type ImageSpec struct {
	// Repository without tag, for example "registry:5000/mirror/etcd". Default:
	// the daemon's --etcd-repository. The tag is v and the spec's version.
	Repository string `json:"repository,omitempty"`
}

// StorageSpec is the volume claim of each member.
type StorageSpec struct {
	// Size of each member's volume.
	Size resource.Quantity `json:"size"`
	// StorageClassName of each member's volume. Default: the cluster's default
	// class.
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// PodTemplate is the part of a pod that a file may set.
type PodTemplate struct {
	// Metadata is added to that of the pod.
	Metadata PodMetadata `json:"metadata,omitzero"`
	// Spec is added to that of the pod.
	Spec PodSpec `json:"spec,omitzero"`
}

// PodMetadata is added to each member's pod.
type PodMetadata struct {
	// Labels to add. The prefixes quorate.dev/ and app.kubernetes.io/ are reserved.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations to add. The prefix quorate.dev/ is reserved.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodSpec is the part of a pod's spec that a file may set; each field has the
// meaning that Kubernetes gives it.
type PodSpec struct {
	// Resources of the etcd container. A CPU limit also sets GOMAXPROCS.
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
	// Affinity replaces the default, a preferred anti-affinity by node.
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// NodeSelector names the labels that a member's node must have.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations let members run on tainted nodes.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// TopologySpreadConstraints replace the default, a preferred spread by zone.
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// PriorityClassName says who is evicted first.
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// SecurityContext replaces the default: non-root user 65532, its group on
	// the volume, the runtime's default seccomp profile.
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`
	// ImagePullSecrets are Secrets of the cluster's namespace.
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
}

// EtcdSpec holds the settings of the etcd process.
type EtcdSpec struct {
	// QuotaBackendBytes is the size at which etcd refuses writes. Default 2Gi,
	// at most 8Gi advised.
	QuotaBackendBytes *resource.Quantity `json:"quotaBackendBytes,omitempty"`
	// AutoCompaction keeps history from growing without end.
	AutoCompaction AutoCompaction `json:"autoCompaction,omitzero"`
	// Options are further etcd flags by name without dashes, for example
	// heartbeat-interval: "100". Flags that quorate owns are refused.
	Options map[string]string `json:"options,omitempty"`
}

// AutoCompaction is etcd's own compaction of old revisions.
type AutoCompaction struct {
	// Mode is "periodic" or "revision". Default "periodic".
	Mode string `json:"mode,omitempty"`
	// Retention is a duration ("8h") or a number of revisions. Default: etcd's
	// own, which is no automatic compaction.
	Retention string `json:"retention,omitempty"`
}

// TLSMode says who makes the certificates.
type TLSMode string

// The TLS modes.
const (
	// TLSManaged lets quorate issue a CA and certificates, kept in Secrets.
	TLSManaged TLSMode = "Managed"
	// TLSDisabled sends everything in clear text. Only for a laboratory.
	TLSDisabled TLSMode = "Disabled"
)

// TLSSpec says how traffic is protected.
type TLSSpec struct {
	// Mode is Managed (default) or Disabled.
	Mode TLSMode `json:"mode,omitempty"`
}

// BackupSpec says where backups of the cluster go.
type BackupSpec struct {
	// Destination of every backup that quorate takes of this cluster.
	Destination Destination `json:"destination,omitzero"`
}

// Destination is a place in an object store.
type Destination struct {
	// ObjectURLTemplate is the URL of one backup object, a Go template over
	// .Namespace, .Name, .Version and .UID, for example
	// "s3://backups/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db?region=eu-west-1".
	// Schemes: s3, gs, azblob, file. It must contain {{ .UID }}, so that no
	// backup overwrites another. Default: the daemon's --backup-url.
	ObjectURLTemplate string `json:"objectURLTemplate,omitempty"`
}

// BackupPolicy says whether an upgrade needs a backup first.
type BackupPolicy string

// The backup policies.
const (
	// BackupRequired lets no upgrade start without a verified backup.
	BackupRequired BackupPolicy = "Required"
	// BackupSkip upgrades without one: an explicit choice, reviewed in Git.
	BackupSkip BackupPolicy = "Skip"
)

// UpgradePath says how far one version change may reach.
type UpgradePath string

// PathStrict refuses a change that etcd does not support in one roll.
const PathStrict UpgradePath = "Strict"

// UpgradeSpec sets the pace and the safety net of version changes.
type UpgradeSpec struct {
	// Backup is Required (default) or Skip.
	Backup BackupPolicy `json:"backup,omitzero"`
	// Soak is how long a restarted member must be ready before the next one is
	// touched. Default 10s.
	Soak *metav1.Duration `json:"soak,omitempty"`
	// Path is Strict (default): one minor at a time, patch floors respected.
	Path UpgradePath `json:"path,omitempty"`
}

// Mode says whether quorate acts.
type Mode string

// The modes.
const (
	// ModeEnforce makes the cluster what Git says.
	ModeEnforce Mode = "Enforce"
	// ModeObserve plans and reports, and touches nothing.
	ModeObserve Mode = "Observe"
)
