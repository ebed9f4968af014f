package schema

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// validateRestore says everything that is wrong with a defaulted restore.
func validateRestore(r *EtcdRestore) []Problem {
	v := &validator{}
	v.metadata(r.Metadata, validation.DNS1123LabelMaxLength)
	v.restoreSource(r.Spec.Source)
	v.restoreTarget(r)
	v.spec(r.Spec.ClusterTemplate, "spec.clusterTemplate")
	v.clientSecrets("spec.clusterTemplate.tls.clients", r.Metadata.Namespace, r.Spec.ClusterName, r.Spec.ClusterTemplate.TLS.Clients)
	if s := r.Spec.ClusterTemplate.State; s != StateRunning {
		v.fail("spec.clusterTemplate.state", "is %s: a restore makes a running cluster, leave the field out", s)
	}
	if r.Spec.ClusterTemplate.Recovery != (RecoverySpec{}) {
		v.fail("spec.clusterTemplate.recovery", "is for a cluster that has lost its quorum, and a restore makes a new one: leave the field out")
	}
	return v.problems
}

// restoreTarget checks the name of the new cluster, which is that of the restore
// where none is given.
func (v *validator) restoreTarget(r *EtcdRestore) {
	switch name := r.Spec.ClusterName; {
	case name != r.Metadata.Name:
		v.name("spec.clusterName", name, maxName)
	case len(name) > maxName:
		v.fail("spec.clusterName", "is missing, and the name of the restore, with %d characters, is too long for a cluster: write one of at most %d", len(name), maxName)
	}
}

// restoreSource checks that exactly one backup is meant.
func (v *validator) restoreSource(s RestoreSource) {
	const field = "spec.source"
	given := 0
	for _, text := range []string{s.ObjectURL, s.Schedule, s.ClusterName} {
		if text != "" {
			given++
		}
	}
	switch {
	case given == 0:
		v.fail(field, "names no backup: write objectURL, schedule or clusterName")
	case given > 1:
		v.fail(field, "names several backups: keep one of objectURL, schedule and clusterName")
	case s.ObjectURL != "":
		v.objectURL(field+".objectURL", s.ObjectURL, s.Credentials.SecretName != "")
	case s.Schedule != "":
		v.name(field+".schedule", s.Schedule, validation.DNS1123LabelMaxLength)
	default:
		v.name(field+".clusterName", s.ClusterName, maxName)
	}
	if s.Before != nil && s.ObjectURL != "" {
		v.fail(field+".before", "is used with schedule or clusterName only: an objectURL names one backup")
	}
	if s.ClusterID != "" {
		v.clusterID(field+".clusterID", s.ClusterID)
		if s.ObjectURL != "" {
			v.fail(field+".clusterID", "is used with schedule or clusterName only: an objectURL names one backup")
		}
	}
	if s.Credentials.SecretName != "" && s.ObjectURL == "" {
		v.fail(field+".credentials", "is used with objectURL only: a schedule or a cluster has its own")
	}
	if s.PodAccess != (PodAccess{}) && s.ObjectURL == "" {
		v.fail(field+".podAccess", "is used with objectURL only: a schedule or a cluster has its own")
	}
	v.podAccess(field+".podAccess", s.PodAccess, s.ObjectURL, s.Credentials)
	v.secret(field+".credentials.secretName", s.Credentials.SecretName)
	v.secret(field+".decryption.secretName", s.Decryption.SecretName)
	v.accepted(field+".acceptHashMismatch", s.AcceptHashMismatch)
	v.accepted(field+".acceptUnsigned", s.AcceptUnsigned)
	for i, key := range s.TrustedKeys {
		v.fingerprint(fmt.Sprintf("%s.trustedKeys[%d]", field, i), key)
	}
}

// fingerprint checks that a text names a public key.
func (v *validator) fingerprint(field, text string) {
	digits, found := strings.CutPrefix(text, "SHA256:")
	if raw, err := base64.RawStdEncoding.Strict().DecodeString(digits); !found || err != nil || len(raw) != sha256.Size {
		v.fail(field, "%s is not the fingerprint of a key: write SHA256: and 43 characters, as quorate snapshot list and the hold of the restore name it, in quotes", clip(text))
	}
}

// accepted checks that what is accepted is the sha256 of one backup.
func (v *validator) accepted(field, sum string) {
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size && sum != "" || strings.ToLower(sum) != sum {
		v.fail(field, "%s is not a sha256: write the 64 hexadecimal digits in lower case that the hold of the restore names, in quotes", clip(sum))
	}
}

// objectURL checks the URL of one backup. secret says that its credentials come from a
// Secret.
func (v *validator) objectURL(field, text string, secret bool) {
	if strings.Contains(text, "{{") {
		v.fail(field, "is a template: write the URL of one backup, as the store lists it")
		return
	}
	if _, err := checkObjectURL(text, "orders.db"); err != nil {
		v.fail(field, "%v", err)
		return
	}
	v.storeAccess(field, text, secret)
}
