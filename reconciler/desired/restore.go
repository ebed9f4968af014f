package desired

import (
	"strings"

	"github.com/quorate/quorate/schema"
)

// WithoutQuery is a URL as people may see it.
func WithoutQuery(objectURL string) string {
	plain, _, _ := strings.Cut(objectURL, "?")
	return plain
}

// WithQueryOf is a URL as it is, or where it has no query, with that of another one.
func WithQueryOf(objectURL, other string) string {
	_, query, _ := strings.Cut(other, "?")
	if query == "" || strings.Contains(objectURL, "?") {
		return objectURL
	}
	return objectURL + "?" + query
}

// RestoreFrom is where the backups of a schedule or a cluster are.
type RestoreFrom struct {
	// Cluster is the name by which they were stored, Schedule the namespace/name of
	// the schedule that made them, empty for any.
	Cluster, Schedule string
	// Destination is their place. Without a template they are in the daemon's.
	Destination schema.Destination
}

// Credentials is the Secret that opens the store, "" for the daemon's own way.
func (w *Restore) Credentials() string {
	if w.Source.ObjectURL == "" && w.From != nil {
		return w.From.Destination.Credentials.SecretName
	}
	return w.Source.Credentials.SecretName
}

// AcceptedHashMismatch is the sha256 of the backup that is restored although etcd said
// another hash of its keys, "" for none, and where a file says it.
func (c *Cluster) AcceptedHashMismatch() (sha256, field string) {
	if c.Restore != nil {
		return c.Restore.Source.AcceptHashMismatch, "spec.source.acceptHashMismatch"
	}
	return c.Spec.Recovery.AcceptHashMismatch, "spec.recovery.acceptHashMismatch"
}

// PodAccess is how a pod reads the backup by itself.
func (w *Restore) PodAccess() schema.PodAccess {
	if w.Source.ObjectURL == "" && w.From != nil {
		return w.From.Destination.PodAccess
	}
	return w.Source.PodAccess
}

// Restore is an EtcdRestore: the backup that a cluster begins with.
type Restore struct {
	// Name of the EtcdRestore, and SpecHash of its whole spec.
	Name, SpecHash string
	// Source is the backup.
	Source schema.RestoreSource
	// From is where the backups are that Source names; nil for an object URL.
	From *RestoreFrom
	// Former is the cluster of the same name that Git declares as deleted, in whose
	// place the restore comes; nil for none.
	Former *schema.EtcdCluster
}

// SourceText describes the backup. The query of a URL is left out.
func SourceText(s schema.RestoreSource) string {
	text := ""
	switch {
	case s.ObjectURL != "":
		return WithoutQuery(s.ObjectURL)
	case s.Schedule != "":
		text = "the newest backup of schedule " + s.Schedule
	default:
		text = "the newest backup of cluster " + s.ClusterName
	}
	if s.ClusterID != "" {
		text += " with cluster ID " + s.ClusterID
	}
	if s.Before != nil {
		text += " before " + s.Before.UTC().Format("2006-01-02T15:04:05Z")
	}
	return text
}
