package schema

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What stands in for a field that was left out, where it is no named value.
const (
	defaultNamespace = "default"
	// defaultSoak is long enough for a member that fails at once to be seen.
	defaultSoak = 10 * time.Second
)

// Default fills what the author left out, with the safe choice. What the daemon
// decides, the image repository and the destination of backups, stays empty.
// Doing it twice changes nothing.
func Default(c *EtcdCluster) {
	fill(&c.Metadata.Namespace, defaultNamespace)
	spec := &c.Spec
	fill(&spec.TLS.Mode, TLSManaged)
	fill(&spec.Upgrade.Backup, BackupRequired)
	fill(&spec.Upgrade.Path, PathStrict)
	fill(&spec.Mode, ModeEnforce)
	if spec.Upgrade.Soak == nil {
		spec.Upgrade.Soak = &metav1.Duration{Duration: defaultSoak}
	}
	// A mode without a retention means nothing to etcd, so none is written.
	if spec.Etcd.AutoCompaction.Retention != "" {
		fill(&spec.Etcd.AutoCompaction.Mode, compactPeriodic)
	}
}

// fill sets a text that was left out.
func fill[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}
