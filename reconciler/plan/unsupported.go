package plan

import "github.com/quorate/quorate/schema"

// wish is something that a file can say and this version of quorate cannot do.
type wish struct {
	asked func(schema.ClusterSpec) bool
	// message says what is not done, do what a person can do about it.
	message, do string
}

// unsupported refuses a file that asks for what this version cannot do yet. A
// file is carried out as a whole or not at all: a cluster whose backups went
// unencrypted, because nobody looked at that field, would be half obeyed.
func unsupported(s *situation) verdict {
	for _, w := range unmet() {
		if w.asked(s.d.Spec) {
			return refuse("this version of quorate "+w.message+", so the cluster is left as it is", w.do)
		}
	}
	return pass()
}

// unmet are the wishes that this version cannot carry out. A row goes when its
// feature comes.
func unmet() []wish {
	return []wish{
		{
			asked:   func(c schema.ClusterSpec) bool { return c.Backup.Destination.Credentials.SecretName != "" },
			message: "does not read credentials for backups from Secrets yet: spec.backup.destination.credentials.secretName is set",
			do:      "leave the field out, and give the credentials to the daemon's environment or service account",
		},
		{
			asked:   func(c schema.ClusterSpec) bool { return len(c.Backup.Destination.Encryption.Recipients) > 0 },
			message: "does not encrypt backups yet: spec.backup.destination.encryption.recipients is set",
			do:      "leave the field out, and have the store encrypt what it keeps",
		},
	}
}
