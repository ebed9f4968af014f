package schema

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The defaults of fields that were left out, where they are no named values.
const (
	defaultNamespace = "default"
	defaultTimeZone  = "UTC"
	// defaultSoak is long enough for a member that fails at once to be seen.
	defaultSoak = 10 * time.Second
)

// Default fills what the author left out, with the safe choice. What the daemon
// decides, the image repository and the destination of backups, stays empty.
// Doing it twice changes nothing.
func Default(c *EtcdCluster) {
	fill(&c.Metadata.Namespace, defaultNamespace)
	defaultSpec(&c.Spec)
}

// defaultSpec fills the spec of a cluster, or of a cluster to be restored.
func defaultSpec(spec *ClusterSpec) {
	fill(&spec.TLS.Mode, TLSManaged)
	for i := range spec.TLS.Clients {
		fill(&spec.TLS.Clients[i].CommonName, spec.TLS.Clients[i].Name)
	}
	fill(&spec.Upgrade.Backup, BackupRequired)
	fill(&spec.Upgrade.Path, PathStrict)
	fill(&spec.State, StateRunning)
	fill(&spec.Deletion.Volumes, VolumesKeep)
	fill(&spec.Deletion.Backup, BackupRequired)
	fill(&spec.Mode, ModeEnforce)
	if spec.Upgrade.Soak == nil {
		spec.Upgrade.Soak = &metav1.Duration{Duration: defaultSoak}
	}
	for i := range spec.Maintenance {
		fill(&spec.Maintenance[i].TimeZone, defaultTimeZone)
	}
	if spec.Defragmentation.Schedule != "" {
		fill(&spec.Defragmentation.TimeZone, defaultTimeZone)
	}
	// A mode without a retention means nothing to etcd, so none is written.
	if spec.Etcd.AutoCompaction.Retention != "" {
		fill(&spec.Etcd.AutoCompaction.Mode, compactPeriodic)
	}
}

// defaultSchedule fills a schedule.
func defaultSchedule(s *EtcdBackupSchedule) {
	fill(&s.Metadata.Namespace, defaultNamespace)
	fill(&s.Spec.TimeZone, defaultTimeZone)
	fill(&s.Spec.Verify.Restore, DrillNever)
}

// defaultRestore fills a restore and the cluster that it makes.
func defaultRestore(r *EtcdRestore) {
	fill(&r.Metadata.Namespace, defaultNamespace)
	fill(&r.Spec.ClusterName, r.Metadata.Name)
	defaultSpec(&r.Spec.ClusterTemplate)
}

// fill sets a text that was left out.
func fill[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}
