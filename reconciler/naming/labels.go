package naming

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/schema"
)

// AnnotationHolds is on a volume claim: the ID in hexadecimal of the member
// whose data quorate has seen on the volume, or plan.HoldsForeign. It goes with the
// claim, so that another claim of the same name is never taken for this one.
const AnnotationHolds = "quorate.dev/holds"

// AnnotationKeeps is on a volume claim: the ID in hexadecimal of the lost cluster whose data
// a recovery has put aside on the volume. Quorate does not delete the claim before a person
// has taken the annotation away.
const AnnotationKeeps = "quorate.dev/keeps"

// Owns reports whether an object carries the labels of what quorate makes for c.
func Owns(live metav1.Object, c schema.EtcdCluster) bool { return HasLabels(live, OwnLabels(c)) }

// HasLabels reports whether an object carries these labels, among others.
func HasLabels(live metav1.Object, labels map[string]string) bool {
	for key, value := range labels {
		if live.GetLabels()[key] != value {
			return false
		}
	}
	return true
}

// FieldManager is the name under which quorate applies every object.
const FieldManager = "quorate"

// Labels and annotations that quorate reads back.
const (
	// LabelCluster marks everything that belongs to a cluster with its name.
	LabelCluster = "quorate.dev/cluster"
	// LabelClient marks the Secret with an application's certificate with the name that
	// spec.tls.clients gives it.
	LabelClient = "quorate.dev/client"
	// LabelClientOf marks the copy of such a Secret in another namespace with the name of the
	// cluster, and LabelClientIn with the namespace of that. It carries no LabelCluster: it is
	// none of the objects of a cluster in its own namespace.
	LabelClientOf = "quorate.dev/client-of"
	LabelClientIn = "quorate.dev/client-of-namespace"
	// LabelActing marks the pod of the daemon that acts, "true", among those that wait for the
	// lease.
	LabelActing = "quorate.dev/acting"
	// AnnotationTemplateHash is on a pod and its template: what the pod was
	// made from, apart from the guard's image.
	AnnotationTemplateHash = "quorate.dev/template-hash"
	// AnnotationVersion is on a pod and its template: the etcd version.
	AnnotationVersion = "quorate.dev/version"
)

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
	return OverlayMaps(c.Metadata.Labels, OwnLabels(c))
}

// OverlayMaps is a new map in which later maps win.
func OverlayMaps(layers ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, layer := range layers {
		maps.Copy(out, layer)
	}
	return out
}

const (
	// LabelDrillOf marks the Job and the pod of a restore drill with the name of its
	// schedule. They carry none of a cluster's labels.
	LabelDrillOf = "quorate.dev/drill-of"
)

const (
	// AnnotationIgnored is on the Service for clients: the JSON pointers of the fields that
	// others may set, with a space between.
	AnnotationIgnored = "quorate.dev/ignored-drift"
	// AnnotationReported is beside it: those of them that are reported as drift.
	AnnotationReported = "quorate.dev/reported-drift"
	// AnnotationOffered is when the URL in a Secret that offers a backup was signed, in
	// RFC 3339.
	AnnotationOffered = "quorate.dev/offered"
	// LabelRestoreOf marks the pods of a restore with the name of its cluster. They
	// carry none of the members' labels: no Service and no budget may count them.
	LabelRestoreOf = "quorate.dev/restore-of"
	// LabelTrialOf marks what tries a storage class with the name of the cluster. It carries none of the members' labels,
	// either.
	LabelTrialOf = "quorate.dev/trial-of"
)

const (
	// LabelBackupOf marks the Job of a backup, and its pod, with the request's name.
	LabelBackupOf = "quorate.dev/backup-of"
)

const (
	// LabelBackup marks the record of an EtcdBackup with its name.
	// They are none of a cluster's: a record outlives the cluster.
	LabelBackup = "quorate.dev/backup"
	// LabelSchedule marks the record of an EtcdBackupSchedule with its name.
	LabelSchedule = "quorate.dev/backup-schedule"
)

// LabelUse is on a Secret of others that a file may have quorate use, and the others are what
// for: backups, and the passwords of etcd's users.
const (
	LabelUse     = "quorate.dev/use"
	UseBackups   = "backups"
	UsePasswords = "passwords"
)
