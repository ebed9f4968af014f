package schema

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// ClusterSpec is the desired state of one cluster.
type ClusterSpec struct {
	// Version is the etcd release, as semantic version without a leading v,
	// major 3 only, for example "3.6.16". It names the image tag v3.6.16.
	Version string `json:"version" jsonschema:"form=version"`
	// Replicas is the number of voting members: 1 to 7. An even number is warned
	// about: it survives no more lost members than the odd number below it. A
	// change is applied one member at a time, between two rollouts.
	Replicas int32 `json:"replicas" jsonschema:"minimum=1,maximum=7"`
	// Image is where the etcd image is pulled from.
	Image ImageSpec `json:"image,omitzero"`
	// Storage is the volume of each member.
	Storage StorageSpec `json:"storage"`
	// PodTemplate adds to the pods that quorate renders.
	PodTemplate PodTemplate `json:"podTemplate,omitzero"`
	// Etcd holds the settings of the etcd process.
	Etcd EtcdSpec `json:"etcd,omitzero"`
	// TLS is how traffic of clients and peers is protected. Immutable for now.
	TLS TLSSpec `json:"tls,omitzero"`
	// Auth is who may read and write which keys. Default: authentication, users and roles
	// are left as they are.
	Auth *AuthSpec `json:"auth,omitempty"`
	// Backup is where backups of this cluster are stored.
	Backup BackupSpec `json:"backup,omitzero"`
	// Upgrade sets the pace and the safety net of version changes.
	Upgrade UpgradeSpec `json:"upgrade,omitzero"`
	// Repair is what is done about a member whose data is lost.
	Repair RepairSpec `json:"repair,omitzero"`
	// Network is under which names and addresses members are reached.
	Network NetworkSpec `json:"network,omitzero"`
	// Maintenance lists the windows in which members may be restarted. Without
	// any, every time is good. Backups and repairs never wait for a window. At
	// most 16.
	Maintenance []MaintenanceWindow `json:"maintenance,omitempty" jsonschema:"maxItems=16"`
	// Defragmentation is when members make their databases' files smaller.
	Defragmentation DefragmentationSpec `json:"defragmentation,omitzero"`
	// Drift is what is done about objects that others have changed.
	Drift DriftSpec `json:"drift,omitzero"`
	// State is Running (default), Hibernated or Deleted. A file that is gone is
	// never a request to delete: only this field is.
	State State `json:"state,omitempty"`
	// Deletion is what state: Deleted keeps.
	Deletion DeletionSpec `json:"deletion,omitzero"`
	// Recovery is what a cluster that has lost its quorum is recovered from, once.
	// Nothing recovers a cluster but this field. Take it out when it is done.
	Recovery RecoverySpec `json:"recovery,omitzero"`
	// Mode is Enforce (default) or Observe: plan and report, touch nothing.
	Mode Mode `json:"mode,omitempty"`
	// TakeOver names the owner that this cluster is taken from, once, as the
	// hold of a cluster with another owner tells it:
	// "https://git.example.com/etcd.git@main:clusters#default/1". The number
	// rises with each change of owner, so the same words never work twice.
	TakeOver string `json:"takeOver,omitempty" jsonschema:"form=owner"`
}

// ImageSpec names the etcd image.
type ImageSpec struct {
	// Repository without tag, for example "registry:5000/mirror/etcd". Default:
	// the daemon's --etcd-repository. The tag is v and the spec's version.
	Repository string `json:"repository,omitempty" jsonschema:"form=repository"`
	// Digest pins the image beyond its tag, for example "sha256:" and 64
	// hexadecimal digits. It must be the digest of the tag's image: change it
	// together with the version. It pins one image, so upgrade.path Stepwise goes
	// through no other release with it. Default: none.
	Digest string `json:"digest,omitempty" jsonschema:"form=digest"`
}

// StorageSpec is the volume claim of each member.
type StorageSpec struct {
	// Size of each member's volume, for example 8Gi. It may grow, where its
	// StorageClass allows that, and never shrinks. Nothing restarts.
	Size resource.Quantity `json:"size" jsonschema:"positive,change=grows only"`
	// StorageClassName of each member's volume. Default: the default class of
	// Kubernetes. A change is refused, but see classChange.
	StorageClassName *string `json:"storageClassName,omitempty" jsonschema:"form=subdomain,change=immutable but by classChange"`
	// ClassChange is Refuse (default) or Replace: then a change of the class
	// replaces the members one at a time by new ones on new volumes, and the old
	// volumes are deleted. No member leaves before a trial volume of the class was
	// made and mounted.
	ClassChange ClassChange `json:"classChange,omitempty"`
	// RemovedVolumes is what is done with the volume of a member that is removed
	// because replicas is lowered: Keep (default) keeps it until another member
	// of its name begins on an empty one, Delete deletes it.
	RemovedVolumes VolumePolicy `json:"removedVolumes,omitempty"`
}

// ClassChange is what a change of the storage class does.
type ClassChange string

// The ways to take a change of the storage class.
const (
	// ClassChangeRefuse refuses it.
	ClassChangeRefuse ClassChange = "Refuse"
	// ClassChangeReplace replaces every member by a new one, one at a time.
	ClassChangeReplace ClassChange = "Replace"
)

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
	Labels map[string]string `json:"labels,omitempty" jsonschema:"form=labels"`
	// Annotations to add. The prefix quorate.dev/ is reserved.
	Annotations map[string]string `json:"annotations,omitempty" jsonschema:"form=annotations"`
}

// PodSpec is the part of a pod's spec that a file may set; each field but Resources has
// the meaning that Kubernetes gives it.
type PodSpec struct {
	// Resources is the old name of spec.etcd.resources, and means the same: the etcd
	// container's, where Kubernetes means those of the whole pod.
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
	// Affinity replaces the default, a preferred anti-affinity by node.
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// NodeSelector names the labels that a member's node must have.
	NodeSelector map[string]string `json:"nodeSelector,omitempty" jsonschema:"form=selector"`
	// Tolerations let members run on tainted nodes.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// TopologySpreadConstraints replace the default, a preferred spread by zone.
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// PriorityClassName decides which pods are evicted first.
	PriorityClassName string `json:"priorityClassName,omitempty" jsonschema:"form=subdomain"`
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
	QuotaBackendBytes *resource.Quantity `json:"quotaBackendBytes,omitempty" jsonschema:"positive"`
	// Resources of the etcd container. A CPU limit also sets GOMAXPROCS.
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
	// AutoCompaction keeps history from growing without end.
	AutoCompaction AutoCompaction `json:"autoCompaction,omitzero"`
	// Options are other etcd flags by name without dashes, for example
	// heartbeat-interval: "100". Which flags there are depends on the version;
	// quorate renames the ones that etcd renamed, feature gates since 3.6
	// included. Flags that quorate owns are refused.
	Options map[string]string `json:"options,omitempty" jsonschema:"form=options"`
}

// MostMembers is how many members there may be at once.
func (s ClusterSpec) MostMembers() int32 {
	if s.Replicas == 1 {
		return s.Replicas + s.Upgrade.MaxSurge
	}
	return s.Replicas
}

// EtcdResources are those of the etcd container, also where they have their old name.
func (s ClusterSpec) EtcdResources() (r corev1.ResourceRequirements, field string) {
	if old := s.PodTemplate.Spec.Resources; isSet(old) && !isSet(s.Etcd.Resources) {
		return old, "podTemplate.spec.resources"
	}
	return s.Etcd.Resources, "etcd.resources"
}

// isSet reports whether a file names any resources.
func isSet(r corev1.ResourceRequirements) bool {
	return r.Limits != nil || r.Requests != nil || r.Claims != nil
}

// AutoCompaction is etcd's own compaction of old revisions.
type AutoCompaction struct {
	// Mode is "periodic" or "revision". Default "periodic".
	Mode string `json:"mode,omitempty" jsonschema:"enum=periodic|revision"`
	// Retention is a duration ("8h") or a number of revisions. Default: etcd's
	// own, which is no automatic compaction.
	Retention string `json:"retention,omitempty" jsonschema:"form=retention"`
}

// BackupSpec is where backups of the cluster are stored.
type BackupSpec struct {
	// Destination of every backup that quorate takes of this cluster.
	Destination Destination `json:"destination,omitzero"`
}

// BackupPolicy decides whether an upgrade needs a backup first.
type BackupPolicy string

// The backup policies.
const (
	// BackupRequired lets no upgrade start without a verified backup.
	BackupRequired BackupPolicy = "Required"
	// BackupSkip upgrades without one: an explicit choice, reviewed in Git.
	BackupSkip BackupPolicy = "Skip"
)

// UpgradePath is how far one version change may reach.
type UpgradePath string

// The upgrade paths.
const (
	// PathStrict refuses a change that etcd does not support in one step.
	PathStrict UpgradePath = "Strict"
	// PathStepwise walks through the releases in between, one roll each.
	PathStepwise UpgradePath = "Stepwise"
)

// UpgradeSpec sets the pace and the safety net of version changes.
type UpgradeSpec struct {
	// Backup is Required (default) or Skip. It also goes for the compaction that
	// frees space under the alarm NOSPACE, for hibernation and for repairs. While the
	// store is down all of these wait; the status says since when. Skip lets them go
	// on, until another commit takes it back.
	Backup BackupPolicy `json:"backup,omitzero"`
	// Soak is how long a restarted member must be ready before the next one is
	// touched, 0s to 1h. Default 10s. One whose etcd has crashed since its pod was
	// made is given a minute at least.
	Soak *metav1.Duration `json:"soak,omitempty"`
	// Path is Strict (default), which refuses a change that etcd does not support
	// in one step, or Stepwise, which goes through the releases in between by
	// itself, with a backup for each. Another minor down goes through etcd's
	// downgrade API either way. Before 3.7 members may be restarted once more on
	// 3.6, so that no log holds entries that 3.7 cannot read.
	Path UpgradePath `json:"path,omitempty"`
	// Wave orders the rolls of all clusters of one daemon, 0 to 99: a roll of
	// this cluster begins only when every cluster of a lower wave is what its
	// file says, and healthy. Repairs and a roll that has begun never wait.
	// Default 0.
	Wave int32 `json:"wave,omitempty" jsonschema:"minimum=0,maximum=99"`
	// MaxSurge is how many members there may be beyond replicas while the only member of
	// a cluster with replicas: 1 is replaced, 0 or 1. Default 0: it restarts in place, and
	// nothing serves meanwhile. With 1 a second member joins and catches up, clients and
	// leadership go over to it, and the first one is replaced: for each restart, for a volume of
	// another class, and as soon as its node is cordoned. The data is copied twice, and there
	// is room for two members to be needed. An older minor, 3.7 where the log may
	// hold entries of 3.5, and another spec.tls.mode are reached in place all the same.
	MaxSurge int32 `json:"maxSurge,omitempty" jsonschema:"minimum=0,maximum=1"`
	// Checks are questions about this cluster, at most 8, that are asked when it is what its
	// file says, and healthy: a higher wave begins when all of them hold. One that cannot be
	// asked does not hold. They are asked only while a cluster of a higher wave waits, and
	// the host of each URL must be among quorate's --check-hosts. Default: none.
	Checks []UpgradeCheck `json:"checks,omitempty" jsonschema:"maxItems=8"`
}

// RepairMode decides which lost members are replaced.
type RepairMode string

// The repair modes.
const (
	// RepairAutomatic replaces a member when it is the only one that is lost.
	RepairAutomatic RepairMode = "Automatic"
	// RepairOneByOne replaces several lost members, too, one after the other, as
	// long as the others hold a quorum.
	RepairOneByOne RepairMode = "OneByOne"
	// RepairNever replaces none, and reports what is lost.
	RepairNever RepairMode = "Never"
)

// DefaultRepairAfter is how long a member must be lost before it is replaced.
const DefaultRepairAfter = 5 * time.Minute

// DefaultNodeTimeout is how long a node that has a member's volume may be silent before the member is replaced.
const DefaultNodeTimeout = time.Hour

// RepairSpec is what is done about a member whose data is lost: its volume is
// gone, empty or corrupt, or holds what an earlier member of its name has left, or
// its node is gone with it. It is removed from the cluster, its volume is deleted,
// and a new member of its name catches up from the others. A backup comes first, as
// upgrade.backup says: while its store is down, the repair waits. A member whose data is there is never replaced, and a volume
// that holds data of another cluster is never deleted.
type RepairSpec struct {
	// Mode is Automatic (default), OneByOne or Never.
	Mode RepairMode `json:"mode,omitempty"`
	// After is how long the loss must last, 0s to 24h. Default 5m.
	After *metav1.Duration `json:"after,omitempty"`
	// NodeTimeout is how long the only node that has a member's volume may not report, while its Node object exists and
	// is not tainted node.kubernetes.io/out-of-service, before the volume counts as lost: 0s to 168h. Default 1h: a node
	// that restarts is back before. A volume that another node can have is never given up with a node.
	NodeTimeout *metav1.Duration `json:"nodeTimeout,omitempty"`
}

// Mode decides whether quorate acts.
type Mode string

// The modes.
const (
	// ModeEnforce makes the cluster what Git says.
	ModeEnforce Mode = "Enforce"
	// ModeObserve plans and reports, and touches nothing.
	ModeObserve Mode = "Observe"
)

// NetworkSpec is under which names and addresses members are reached.
type NetworkSpec struct {
	// ClusterDomain is the DNS domain of the Kubernetes cluster, for the names
	// in certificates. Default: the daemon's --cluster-domain, cluster.local.
	// Immutable for now in tls.mode Managed.
	ClusterDomain string `json:"clusterDomain,omitempty" jsonschema:"form=subdomain,change=immutable in tls.mode Managed"`
	// IPFamilyPolicy of the Services: SingleStack, PreferDualStack or
	// RequireDualStack. Default: that of Kubernetes, SingleStack.
	IPFamilyPolicy corev1.IPFamilyPolicy `json:"ipFamilyPolicy,omitempty" jsonschema:"enum=SingleStack|PreferDualStack|RequireDualStack"`
	// IPFamilies of the Services in order: IPv4, IPv6 or both. Default: those
	// of Kubernetes. The first is immutable.
	IPFamilies []corev1.IPFamily `json:"ipFamilies,omitempty" jsonschema:"enum=IPv4|IPv6,maxItems=2,unique,change=the first is immutable"`
}

// MaintenanceWindow is a time in which members may be restarted.
type MaintenanceWindow struct {
	// Schedule is when the window opens, in crontab syntax with five fields,
	// for example "0 2 * * 6": Saturdays at two.
	Schedule string `json:"schedule" jsonschema:"form=opening"`
	// Duration is how long it stays open, 15m to 168h. A restart that has begun
	// is carried to its end.
	Duration metav1.Duration `json:"duration"`
	// TimeZone of the schedule by its IANA name, for example "Europe/Berlin".
	// Default "UTC". Where clocks go forward over the opening time, the window
	// opens at the first moment after it.
	TimeZone string `json:"timeZone,omitempty" jsonschema:"form=timeZone"`
}

// DefragmentationSpec is when members make their databases' files smaller. A
// member answers no requests meanwhile, so it is done one at a time, the leader last
// and after it has handed over, and never on a release that may lose data in it.
// Under the alarm NOSPACE members are defragmented whatever is set here.
type DefragmentationSpec struct {
	// Mode is Auto (default) or Never. Auto defragments a member whose database
	// fills 80 % of its quota, or has more than 200Mi that it does not need; inside
	// the maintenance windows, where there are any.
	Mode DefragmentationMode `json:"mode,omitempty"`
	// Schedule is when all members are defragmented besides, in crontab syntax
	// with five fields, for example "0 3 * * 0": Sundays at three. It is a time of
	// its own and waits for no window; one that cannot be kept within an hour is
	// left out. Default: never.
	Schedule string `json:"schedule,omitempty" jsonschema:"form=opening"`
	// TimeZone of the schedule by its IANA name, for example "Europe/Berlin".
	// Default "UTC".
	TimeZone string `json:"timeZone,omitempty" jsonschema:"form=timeZone"`
}

// DriftSpec is what is done about the objects of a cluster that others have changed: its
// Services, PodDisruptionBudget and StatefulSet.
type DriftSpec struct {
	// Mode is Correct (default) or Detect. Correct puts back what others change or delete.
	// Detect reports it and leaves it, and nothing new begins for the cluster meanwhile; what
	// is missing is made only while no member runs, and what changes in Git is applied.
	Mode DriftMode `json:"mode,omitempty"`
	// Ignore lists fields that others set, and that are not put back. At most 16.
	Ignore []IgnoredDrift `json:"ignore,omitempty" jsonschema:"maxItems=16"`
}

// IgnoredDrift is a field of one kind of object that others may set.
type IgnoredDrift struct {
	// Kind is Service: the one for clients. Of all other objects quorate relies on
	// every field.
	Kind string `json:"kind"`
	// Path is a JSON pointer (RFC 6901) to a field of its spec that quorate itself does not
	// set, such as "/spec/externalTrafficPolicy". What is below it is ignored, too.
	Path string `json:"path"`
	// Reason says for readers of the file who sets it, and why.
	Reason string `json:"reason"`
	// Report tells of what others have set there, as drift that is never put back: mode
	// Detect for this field alone. Default false: it is no drift.
	Report bool `json:"report,omitempty"`
}

// DriftMode is what is done about drift.
type DriftMode string

// The modes of drift.
const (
	DriftCorrect DriftMode = "Correct"
	DriftDetect  DriftMode = "Detect"
)

// DefragmentationMode reports whether members are defragmented without a full
// database.
type DefragmentationMode string

// The modes of defragmentation.
const (
	// DefragmentationAuto defragments by threshold, and by schedule if there is one.
	DefragmentationAuto DefragmentationMode = "Auto"
	// DefragmentationNever defragments under the alarm NOSPACE only.
	DefragmentationNever DefragmentationMode = "Never"
)

// State is how much of a cluster should exist.
type State string

// The states.
const (
	// StateRunning is a cluster with all its members.
	StateRunning State = "Running"
	// StateHibernated keeps the volumes and runs no member.
	StateHibernated State = "Hibernated"
	// StateDeleted removes the cluster.
	StateDeleted State = "Deleted"
)

// VolumePolicy is what is done with volumes.
type VolumePolicy string

// The volume policies.
const (
	// VolumesKeep keeps the volumes: the same file brings the data back.
	VolumesKeep VolumePolicy = "Keep"
	// VolumesDelete deletes the volumes and the data on them permanently.
	VolumesDelete VolumePolicy = "Delete"
)

// DeletionSpec is what state: Deleted keeps.
type DeletionSpec struct {
	// Volumes is Keep (default) or Delete.
	Volumes VolumePolicy `json:"volumes,omitempty"`
	// Backup is Required (default), which deletes nothing before a verified
	// backup, or Skip.
	Backup BackupPolicy `json:"backup,omitempty"`
}

// RecoverySpec is a person's choice for a cluster that has lost its quorum:
// exactly one of a member and a backup to recover from. What only the lost members
// had is lost. It is applied once, and only when the quorum was lost before
// it was written. The old data is kept on the volumes, and no repair deletes it before
// you have let it go.
type RecoverySpec struct {
	// ClusterID of the lost cluster in hexadecimal, as the hold names it. The
	// recovered cluster has another one.
	ClusterID string `json:"clusterID" jsonschema:"form=clusterID"`
	// Member from whose data the cluster is recovered, for example "orders-1". It must
	// answer, and no other member that answers may be ahead of it.
	Member string `json:"member,omitempty" jsonschema:"form=label"`
	// ObjectURL of the backup that the cluster is recovered from, for example
	// "s3://backups/shop/orders/0123456789ab.db?region=eu-west-1", with parameters as those
	// of a restore; its credentials are those of spec.backup.destination. It must be a
	// backup of this cluster.
	ObjectURL string `json:"objectURL,omitempty" jsonschema:"form=objectURL"`
	// Decryption of a backup that was encrypted.
	Decryption DecryptionSpec `json:"decryption,omitzero"`
	// AcceptHashMismatch is the sha256 of the backup at ObjectURL, which is restored
	// although etcd's hash of the keys in it is not what etcd said when it was taken:
	// see spec.source.acceptHashMismatch of an EtcdRestore.
	AcceptHashMismatch string `json:"acceptHashMismatch,omitempty" jsonschema:"form=sha256"`
	// AcceptUnsigned is the sha256 of the backup at ObjectURL, which is restored although
	// its manifest is not signed: see spec.source.acceptUnsigned of an EtcdRestore.
	AcceptUnsigned string `json:"acceptUnsigned,omitempty" jsonschema:"form=sha256"`
}

// Source describes what the cluster is recovered from; "" for no recovery.
func (r RecoverySpec) Source() string {
	switch {
	case r.Member != "":
		return "member " + r.Member
	case r.ObjectURL != "":
		return "backup " + r.ObjectURL
	}
	return ""
}
