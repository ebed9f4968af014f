package plan

import (
	"testing"

	"github.com/quorate/quorate/schema"
)

func TestUnsupported(t *testing.T) {
	spec := func(edit func(*schema.ClusterSpec)) mutation {
		return func(s *situation) { edit(&s.d.Spec) }
	}
	checkRule(t, unsupported, []ruleCase{
		{name: "a file without such a wish passes"},
		{name: "what stands for the default passes", change: spec(func(c *schema.ClusterSpec) { c.State = schema.StateRunning })},
		{
			name:   "a destination alone passes",
			change: spec(func(c *schema.ClusterSpec) { c.Backup.Destination.ObjectURLTemplate = "s3://b/{{ .UID }}" }),
		},
		{
			name:   "credentials for backups",
			change: spec(func(c *schema.ClusterSpec) { c.Backup.Destination.Credentials.SecretName = "s3" }),
			want:   "Refused: this version of quorate does not read credentials for backups from Secrets yet: spec.backup.destination.credentials.secretName is set, so the cluster is left as it is; leave the field out",
		},
		{
			name:   "encryption of backups",
			change: spec(func(c *schema.ClusterSpec) { c.Backup.Destination.Encryption.Recipients = []string{"age1"} }),
			want:   "Refused: this version of quorate does not encrypt backups yet: spec.backup.destination.encryption.recipients is set, so the cluster is left as it is; leave the field out",
		},
	})
	if rows := len(unmet()); rows != 2 {
		t.Errorf("%d wishes, and the table above tests 2", rows)
	}
}
