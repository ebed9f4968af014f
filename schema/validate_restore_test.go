package schema

import "testing"

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
		{"Secret that is none", "{schedule: nightly, decryption: {secretName: A/B}}", "spec.source.decryption.secretName: is not the name of a Secret"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expectOne(t, one(schedule+"---\n"+restoreText("again", "source: "+c.source)).Problems, c.want)
		})
	}
}
