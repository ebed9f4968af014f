package naming

import "github.com/quorate/quorate/schema"

// What people find beside an object, with kubectl or `quorate status`. Nothing is ever
// decided by any of it. The ConfigMaps carry none of a cluster's labels: a write of one
// must not wake the cluster that it tells of.
const (
	// LabelStatus marks the ConfigMap with the status of an object by its kind: cluster,
	// backup, schedule or restore.
	LabelStatus = "quorate.dev/status"
	// LabelStatusOf is the name of that object.
	LabelStatusOf = "quorate.dev/status-of"
	// LabelStatusBy is which quorate writes it, as a hash of what it follows and its
	// instance.
	LabelStatusBy = "quorate.dev/status-by"
	// LabelPhase, LabelReason, LabelWantedVersion and LabelCommit are on that ConfigMap,
	// and on the StatefulSet of a cluster.
	LabelPhase         = "quorate.dev/phase"
	LabelReason        = "quorate.dev/reason"
	LabelWantedVersion = "quorate.dev/wanted-version"
	LabelCommit        = "quorate.dev/commit"
	// AnnotationWritten is when the ConfigMap was written last, in RFC 3339.
	AnnotationWritten = "quorate.dev/written"
	// KeyStatus is the key of the status in it.
	KeyStatus = "status.yaml"
	// StatusManager writes the labels on StatefulSets. It is not FieldManager, which
	// would want them away again.
	StatusManager = "quorate-status"
)

// StatusKind is a kind of object as LabelStatus has it.
func StatusKind(kind string) string {
	switch kind {
	case schema.KindCluster:
		return "cluster"
	case schema.KindBackup:
		return "backup"
	case schema.KindBackupSchedule:
		return "schedule"
	case schema.KindRestore:
		return "restore"
	}
	return ""
}

// Status is the ConfigMap with the status of an object. The kind stands behind the
// name, so that no two objects of a namespace have the same.
func Status(kind, name string) string { return name + "-" + StatusKind(kind) + "-status" }
