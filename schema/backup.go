package schema

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KindBackup is the kind of an EtcdBackup document.
const KindBackup = "EtcdBackup"

// EtcdBackup declares one backup, which is taken once. The name and the spec
// together say which one: a changed spec is another backup, a file that is added
// again is not.
type EtcdBackup struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata names the backup.
	Metadata Metadata `json:"metadata"`
	// Spec says what to back up, and where to.
	Spec BackupRequest `json:"spec"`
}

// BackupRequest says what to back up, and where to.
type BackupRequest struct {
	// Source is the cluster to back up.
	Source BackupSource `json:"source"`
	// Destination of the backup. Default: that of the cluster's spec.backup,
	// else the daemon's --backup-url. A source by URL has no cluster to ask.
	Destination Destination `json:"destination,omitzero"`
}

// BackupSource is the cluster to back up: exactly one of its name and its URL.
type BackupSource struct {
	// ClusterName is an EtcdCluster of the same namespace.
	ClusterName string `json:"clusterName,omitempty" jsonschema:"form=label,maxLength=40"`
	// ClusterURL is a client URL of a cluster that quorate does not run, for
	// example "https://etcd.example.com:2379".
	ClusterURL string `json:"clusterURL,omitempty" jsonschema:"form=clusterURL"`
	// TLS of the connection to ClusterURL.
	TLS SourceTLS `json:"tls,omitzero"`
}

// SourceTLS says how to reach a cluster by URL.
type SourceTLS struct {
	// SecretName is a Secret of the same namespace, with the keys ca.crt and,
	// where the cluster asks for a client certificate, tls.crt and tls.key. It must have
	// the label quorate.dev/use: backups.
	SecretName string `json:"secretName,omitempty" jsonschema:"form=subdomain"`
}
