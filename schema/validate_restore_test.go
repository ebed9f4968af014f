package schema

import (
	"strings"
	"testing"
)

// What a source does not use is refused, rather than left out unnoticed.
func TestValidateRestoreSource(t *testing.T) {
	schedule := scheduleOfURL()
	for _, c := range []struct{ name, source, want string }{
		{"schedule", "{schedule: nightly}", ""},
		{"schedule before a time", "{schedule: nightly, before: 2026-11-20T08:00:00Z, decryption: {secretName: age}}", ""},
		{"credentials of a schedule", "{schedule: nightly, credentials: {secretName: aws}}", "spec.source.credentials: is used with objectURL only: a schedule or a cluster has its own"},
		{"schedule of one cluster", "{schedule: nightly, clusterID: cdf818194e3a8c32}", ""},
		{"ID that is none", "{schedule: nightly, clusterID: orders}", "spec.source.clusterID: \"orders\" is not the ID of a cluster: write it in hexadecimal, as the hold names it, in quotes"},
		{"ID beside a URL", "{objectURL: s3://b/x.db, clusterID: cdf818194e3a8c32}", "spec.source.clusterID: is used with schedule or clusterName only: an objectURL names one backup"},
		{"two sources", "{schedule: nightly, objectURL: s3://b/x.db}", "spec.source: names several backups: keep one of objectURL, schedule and clusterName"},
		{"what is accepted", "{schedule: nightly, acceptHashMismatch: \"" + strings.Repeat("0a", 32) + "\"}", ""},
		{"what is accepted, cut short", "{schedule: nightly, acceptHashMismatch: \"0a\"}", "spec.source.acceptHashMismatch: \"0a\" is not a sha256: write the 64 hexadecimal digits in lower case that the hold of the restore names, in quotes"},
		{"what is accepted, in upper case", "{schedule: nightly, acceptHashMismatch: \"" + strings.Repeat("0A", 32) + "\"}", "is not a sha256"},
		{"what is accepted, in words", "{schedule: nightly, acceptHashMismatch: \"" + strings.Repeat("no", 32) + "\"}", "is not a sha256"},
		{"what is accepted unsigned", "{objectURL: s3://b/x.db, acceptUnsigned: \"" + strings.Repeat("0a", 32) + "\"}", ""},
		{"what is accepted unsigned, cut short", "{schedule: nightly, acceptUnsigned: \"0a\"}", "spec.source.acceptUnsigned: \"0a\" is not a sha256"},
		{"keys", "{schedule: nightly, trustedKeys: [\"SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU\"]}", ""},
		{"key that is none", "{schedule: nightly, trustedKeys: [\"SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU\", \"SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\"]}", "spec.source.trustedKeys[1]: \"SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\" is not the fingerprint of a key: write SHA256: and 43 characters"},
		{"key by another hash", "{schedule: nightly, trustedKeys: [\"MD5:47DEQpj8HBSa\"]}", "is not the fingerprint of a key"},
		{"Secret that is none", "{schedule: nightly, decryption: {secretName: A/B}}", "spec.source.decryption.secretName: is not the name of a Secret"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expectOne(t, one(schedule+"---\n"+restoreText("again", "source: "+c.source)).Problems, c.want)
		})
	}
}

// 166: what is accepted of a backup makes it no other one, so that it may be said while it
// is being restored.
func TestWhatIsAcceptedIsNoOtherSource(t *testing.T) {
	source := RestoreSource{ObjectURL: "s3://b/x.db"}
	accepts := source
	accepts.AcceptHashMismatch, accepts.AcceptUnsigned, accepts.TrustedKeys = strings.Repeat("0a", 32), strings.Repeat("0b", 32), []string{"SHA256:x"}
	if SourceHash(source) != SourceHash(accepts) {
		t.Error("it is another source")
	}
	if RestoreHash(RestoreSpec{Source: source}) == RestoreHash(RestoreSpec{Source: accepts}) {
		t.Error("nobody sees that it has changed")
	}
}

// 192: where pods could not read a backup by themselves is said before there is one.
func TestValidatePodAccess(t *testing.T) {
	const file, store = "file:///b/{{ .UID }}.db", "gs://b/{{ .UID }}.db"
	for name, c := range map[string]struct {
		template string
		access   PodAccess
		secret   string
		want     string
	}{
		"nothing said":                {want: ""},
		"a store":                     {template: store},
		"a claim for files":           {template: file, access: PodAccess{ClaimName: "backups"}},
		"a claim for the daemon's":    {access: PodAccess{ClaimName: "backups"}},
		"a ServiceAccount":            {template: store, access: PodAccess{ServiceAccountName: "reader"}},
		"files that no pod can read":  {template: file, want: "podAccess.claimName: is missing: quorate can back up to a file URL, and no restore or drill can read it there"},
		"files and a ServiceAccount":  {template: file, access: PodAccess{ServiceAccountName: "reader"}, want: "podAccess.claimName: is missing"},
		"a claim for a store":         {template: store, access: PodAccess{ClaimName: "backups"}, want: "podAccess.claimName: is for file URLs only"},
		"two ways":                    {template: file, access: PodAccess{ClaimName: "a", ServiceAccountName: "b"}, want: "podAccess: names two ways"},
		"no name of a claim":          {template: file, access: PodAccess{ClaimName: "A/b"}, want: "podAccess.claimName: is not the name of a PersistentVolumeClaim"},
		"no name of a ServiceAccount": {template: store, access: PodAccess{ServiceAccountName: "A/b"}, want: "podAccess.serviceAccountName: is not the name of a ServiceAccount"},
		"a Secret as well":            {template: store, access: PodAccess{ServiceAccountName: "a"}, secret: "s", want: "podAccess.serviceAccountName: has no effect beside credentials.secretName"},
	} {
		t.Run(name, func(t *testing.T) {
			v := &validator{}
			v.destination("destination", Destination{ObjectURLTemplate: c.template, PodAccess: c.access, Credentials: CredentialsSpec{SecretName: c.secret}})
			expectOne(t, v.problems, c.want)
		})
	}
	v := &validator{}
	v.restoreSource(RestoreSource{Schedule: "nightly", PodAccess: PodAccess{ClaimName: "backups"}})
	expectOne(t, v.problems, "spec.source.podAccess: is used with objectURL only")
	own, clusters := Destination{PodAccess: PodAccess{ClaimName: "own"}}, Destination{ObjectURLTemplate: file, PodAccess: PodAccess{ClaimName: "theirs"}}
	if got := own.Or(clusters).PodAccess.ClaimName; got != "own" {
		t.Errorf("it is read by %q", got)
	}
	if got := (Destination{}).Or(clusters).PodAccess.ClaimName; got != "theirs" {
		t.Errorf("it is read by %q", got)
	}
}
