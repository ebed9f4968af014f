package schema

// APIVersion is the group and version of every kind in this package.
const APIVersion = Group + "/v1alpha1"

// Metadata is the part of Kubernetes object metadata that a file may set.
type Metadata struct {
	// Name is a DNS label: lower-case letters, digits and dashes. That of a
	// cluster has at most 40 characters, because Kubernetes appends to it to name
	// pods and volumes; other names have at most 63.
	Name string `json:"name" jsonschema:"form=label"`
	// Namespace of the object, and of the Secrets and clusters that it names.
	// Default "default".
	Namespace string `json:"namespace,omitempty" jsonschema:"form=label"`
	// Labels of an EtcdCluster are copied to every object that quorate makes for
	// it. The prefixes quorate.dev/ and app.kubernetes.io/ are reserved.
	Labels map[string]string `json:"labels,omitempty" jsonschema:"form=labels"`
	// Annotations of an EtcdCluster are copied to its StatefulSet. The prefix
	// quorate.dev/ is reserved.
	Annotations map[string]string `json:"annotations,omitempty" jsonschema:"form=annotations"`
}

// Destination is a place in an object store.
type Destination struct {
	// ObjectURLTemplate is the URL of one backup object, a Go template over
	// .Namespace, .Name, .Version and .UID, for example
	// "s3://backups/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db?region=eu-west-1".
	// Schemes: s3, gs, azblob, and file, where the daemon's --backup-url or --backup-place
	// names the directory. An S3-compatible server is named by
	// ?endpoint=https://…&region=…. Such a server is sent no checksums of Amazon's, unless
	// request_checksum_calculation=when_supported is added, and need not know
	// conditional writes. The URL must contain {{ .UID }}, so that no
	// backup overwrites another. Parameters that say where credentials go, or which of
	// several they are (endpoint and profile of s3, endpoint and universe_domain of gs,
	// all of azblob), need a Secret in credentials: the daemon's own credentials go only
	// where its --backup-url says. A store without TLS (http) needs the daemon's
	// --insecure-stores. Default: the daemon's --backup-url.
	ObjectURLTemplate string `json:"objectURLTemplate,omitempty" jsonschema:"form=template"`
	// Credentials for the store. Default: those of the daemon's environment or service
	// account, which serve the places of its --backup-url and --backup-place alone.
	Credentials CredentialsSpec `json:"credentials,omitzero"`
	// Encryption of the backups before they leave quorate. Default: none.
	Encryption EncryptionSpec `json:"encryption,omitzero"`
	// PodAccess is how restores and restore drills read the backups where the store
	// gives out no signed URLs. Default: none.
	PodAccess PodAccess `json:"podAccess,omitzero"`
	// Compression of the backups: Zstd, or None to store a snapshot as etcd sends it,
	// as is one that Zstd does not make smaller by a tenth. Without quorate, zstd -d
	// reads them, after age -d where they are encrypted; a quorate from before there
	// was compression says that a newer one wrote them. Default "Zstd".
	Compression Compression `json:"compression,omitempty"`
}

// Compression says how backups are compressed.
type Compression string

const (
	// CompressionZstd compresses them with zstd: also the meaning of "", so that what a
	// file leaves out changes the hash of no spec.
	CompressionZstd Compression = "Zstd"
	// CompressionNone stores them as etcd sends them.
	CompressionNone Compression = "None"
)

// Or is the destination, with what it leaves out taken from another one. One that
// names a place names all that belongs to it. One that names none may still name its
// own credentials, compression, and who can decrypt: nothing is stored in the clear that
// was to be encrypted.
func (d Destination) Or(other Destination) Destination {
	if d.ObjectURLTemplate != "" {
		return d
	}
	if d.Credentials.SecretName != "" {
		other.Credentials = d.Credentials
	}
	if len(d.Encryption.Recipients) > 0 {
		other.Encryption = d.Encryption
	}
	if d.PodAccess != (PodAccess{}) {
		other.PodAccess = d.PodAccess
	}
	if d.Compression != "" {
		other.Compression = d.Compression
	}
	return other
}

// PodAccess says how a pod in the object's namespace reads backups by itself. A restore
// or a drill needs none of it where quorate can sign a URL for it, as it can for s3, and
// for gs and azblob with a key or with the right to sign, nor where the destination has
// credentials in a Secret, which the pod is given then.
type PodAccess struct {
	// ClaimName is a PersistentVolumeClaim of the object's namespace, for file URLs:
	// pods mount it where the root of the URL is, its first directory or the one that
	// the parameter root names, and find the files there that quorate has written. A
	// restore and a drill mount it read-only; with --backup-runner=job the pod that
	// takes the backup writes to it.
	ClaimName string `json:"claimName,omitempty" jsonschema:"form=subdomain"`
	// ServiceAccountName is a ServiceAccount of the object's namespace whose own
	// identity at the cloud, such as that of EKS, GKE or AKS, may read the store. The
	// pods run as it.
	ServiceAccountName string `json:"serviceAccountName,omitempty" jsonschema:"form=subdomain"`
}

// CredentialsSpec is where the credentials for an object store are.
type CredentialsSpec struct {
	// SecretName is a Secret of the object's namespace. For s3 it has the keys
	// credentials and config, the two files of the AWS command line, or
	// access-key-id, secret-access-key and, for temporary ones, session-token; for
	// gs the key credentials.json, that of a service account; for azblob the keys
	// account and key. The key ca.crt has the certificate of a private CA that the
	// store's own comes from. The Secret is read for every backup, and must have the label
	// quorate.dev/use: backups.
	SecretName string `json:"secretName,omitempty" jsonschema:"form=subdomain"`
}

// EncryptionSpec lists the keys that can read a backup.
type EncryptionSpec struct {
	// Recipients are the public keys (age1…) whose owners can decrypt, at most
	// 16. quorate never holds a private key for backups; a restore reads one from
	// a Secret.
	Recipients []string `json:"recipients,omitempty" jsonschema:"form=recipient,maxItems=16"`
}
