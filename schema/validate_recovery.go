package schema

import (
	"strconv"
	"strings"
)

// recovery checks that a recovery names a cluster, and exactly one thing to go
// on from. stored is where the cluster's own backups are.
func (v *validator) recovery(r RecoverySpec, stored Destination) {
	if r == (RecoverySpec{}) {
		return
	}
	v.clusterID("recovery.clusterID", r.ClusterID)
	switch {
	case r.Member == "" && r.ObjectURL == "":
		v.fail("recovery", "names no source: write member or objectURL")
	case r.Member != "" && r.ObjectURL != "":
		v.fail("recovery", "names a member and a backup: keep the one to recover from")
	case r.ObjectURL != "":
		v.objectURL("recovery.objectURL", r.ObjectURL, stored.Credentials.SecretName != "")
	}
	v.secret("recovery.decryption.secretName", r.Decryption.SecretName)
	if r.Decryption.SecretName != "" && r.ObjectURL == "" {
		v.fail("recovery.decryption", "is used with objectURL only: a member's data is not encrypted")
	}
	for _, accepted := range []struct{ field, sum string }{
		{"recovery.acceptHashMismatch", r.AcceptHashMismatch}, {"recovery.acceptUnsigned", r.AcceptUnsigned},
	} {
		v.accepted(accepted.field, accepted.sum)
		if accepted.sum != "" && r.ObjectURL == "" {
			v.fail(accepted.field, "is used with objectURL only: it is the sha256 of a backup")
		}
	}
}

// clusterID checks the ID that etcd gives a cluster.
func (v *validator) clusterID(field, text string) {
	if id, err := strconv.ParseUint(text, 16, 64); err != nil || id == 0 || text != strconv.FormatUint(id, 16) {
		v.fail(field, "%s is not the ID of a cluster: write it in hexadecimal, as the hold names it, in quotes", clip(text))
	}
}

// recoveredMember checks that the member to recover from is one of this cluster,
// and that it is to stay one.
func (v *validator) recoveredMember(c *EtcdCluster) {
	member := c.Spec.Recovery.Member
	if member == "" {
		return
	}
	ordinal, found := strings.CutPrefix(member, c.Metadata.Name+"-")
	n, err := strconv.ParseUint(ordinal, 10, 31)
	if !found || err != nil || ordinal != strconv.FormatUint(n, 10) {
		v.fail("spec.recovery.member", "%s is not a member of this cluster: write one such as %s-0", clip(member), c.Metadata.Name)
		return
	}
	if n >= uint64(max(c.Spec.Replicas, 0)) {
		v.fail("spec.recovery.member", "%s is beyond spec.replicas, so it would be removed at once: set spec.replicas to %d at least", clip(member), n+1)
	}
}
