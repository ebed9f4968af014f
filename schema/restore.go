package schema

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KindRestore is the kind of an EtcdRestore document.
const KindRestore = "EtcdRestore"

// EtcdRestore declares one restore of a backup into a new cluster, which is
// carried out once. Nothing that exists is ever restored over.
type EtcdRestore struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata names the restore.
	Metadata Metadata `json:"metadata"`
	// Spec says which backup becomes which cluster.
	Spec RestoreSpec `json:"spec"`
}

// RestoreSpec says which backup becomes which cluster.
type RestoreSpec struct {
	// Source is the backup.
	Source RestoreSource `json:"source"`
	// ClusterName is the name of the new cluster, at most 40 characters. Default:
	// that of the restore. An EtcdCluster of that name must not stand in Git, but
	// with state: Deleted; once the restore is done, the restore's file gives way
	// to one of an EtcdCluster with the same spec.
	ClusterName string `json:"clusterName,omitempty" jsonschema:"form=label,maxLength=40"`
	// ClusterTemplate is the spec of the new cluster, exactly as in an
	// EtcdCluster. Its minor must not be older than that of the backup.
	ClusterTemplate ClusterSpec `json:"clusterTemplate"`
}

// RestoreSource is a backup: exactly one of a URL, a schedule and a cluster.
type RestoreSource struct {
	// ObjectURL is the URL of one backup, for example
	// "s3://backups/shop/orders/0123456789ab.db?region=eu-west-1". Its parameters are those
	// of an objectURLTemplate; without any, and without a Secret, a backup in the bucket of
	// the daemon's --backup-url is read with the parameters of that.
	ObjectURL string `json:"objectURL,omitempty" jsonschema:"form=objectURL"`
	// Schedule is an EtcdBackupSchedule of the same namespace: its newest
	// verified backup is restored. Where it is not clear which one that is, because
	// the backups are of several clusters, or the newest is dated in the future or of
	// what looks like a cluster that began empty, none is, and all are named: name one
	// with ObjectURL, ClusterID or Before.
	Schedule string `json:"schedule,omitempty" jsonschema:"form=label"`
	// ClusterName is an EtcdCluster of the same namespace: the newest verified
	// backup under the destination of its spec.backup is restored, as of Schedule.
	ClusterName string `json:"clusterName,omitempty" jsonschema:"form=label,maxLength=40"`
	// Before takes the newest backup of Schedule or ClusterName that was taken
	// before this time, in RFC 3339, for example "2026-11-20T08:00:00Z".
	Before *metav1.Time `json:"before,omitempty"`
	// ClusterID is the ID in hexadecimal of the cluster whose newest backup is restored,
	// where Schedule or ClusterName has backups of several. Default: the one that the
	// record of the cluster names, or the only one there is.
	ClusterID string `json:"clusterID,omitempty" jsonschema:"form=clusterID"`
	// Credentials for the store of ObjectURL. Default: those of the daemon's
	// environment or service account.
	Credentials CredentialsSpec `json:"credentials,omitzero"`
	// PodAccess is how the restore reads the backup of ObjectURL where its store gives
	// out no signed URLs. Default: none.
	PodAccess PodAccess `json:"podAccess,omitzero"`
	// Decryption of a backup that was encrypted.
	Decryption DecryptionSpec `json:"decryption,omitzero"`
	// AcceptHashMismatch is the sha256 of one backup that is restored although
	// etcd's hash of the keys in it is not what etcd said when it was taken: keys
	// may be missing, of another time, or damaged. It is 64 hexadecimal digits in
	// lower case, as the hold of the restore that has failed names them. Its sha256,
	// its size and etcd's checksum of the file are compared all the same, and no
	// other backup is meant. It may be added while the restore is held. Default:
	// none, so that such a backup is refused.
	AcceptHashMismatch string `json:"acceptHashMismatch,omitempty" jsonschema:"form=sha256"`
	// TrustedKeys are the fingerprints of the keys by one of which the manifest of the
	// backup must be signed, for example
	// "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU", as quorate snapshot list and the
	// hold of the restore name them. Default: the daemon's own key and those of its
	// --backup-trusted-keys-file, and where it has none, no backup need be signed.
	TrustedKeys []string `json:"trustedKeys,omitempty" jsonschema:"form=fingerprint"`
	// AcceptUnsigned is the sha256 of one backup that is restored although its manifest is
	// not signed, such as one that was adopted: 64 hexadecimal digits in lower case, as the
	// hold of the restore names them. No other backup is meant, and no manifest that was
	// changed after it was signed. Default: none, so that where keys are trusted such a
	// backup is refused.
	AcceptUnsigned string `json:"acceptUnsigned,omitempty" jsonschema:"form=sha256"`
}

// withoutAccepted is what names the backup, without what is accepted of it.
func (s RestoreSource) withoutAccepted() RestoreSource {
	s.AcceptHashMismatch, s.TrustedKeys, s.AcceptUnsigned = "", nil, ""
	return s
}

// DecryptionSpec says where the private key for a backup is.
type DecryptionSpec struct {
	// SecretName is a Secret of the same namespace with the key identity, which
	// holds an age private key.
	SecretName string `json:"secretName,omitempty" jsonschema:"form=subdomain"`
}
