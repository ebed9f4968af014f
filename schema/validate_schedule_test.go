package schema

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestValidateWindows(t *testing.T) {
	for _, c := range []struct{ name, windows, want string }{
		{"11 overlapping windows", `{schedule: "0 2 * * 6", duration: 3h}, {schedule: "0 3 * * 6", duration: 3h}`, ""},
		{"11 name", `{schedule: "@weekly", duration: 3h}`, ""},
		{"11 interval", `{schedule: "@every 24h", duration: 3h}`, "spec.maintenance[0].schedule: @every is an interval, not a time: write the time"},
		{"11 window that never closes", `{schedule: "0 2 * * *", duration: 24h}`, "warning: spec.maintenance[0].duration: is 24h0m0s and the window opens again after 24h0m0s, so it never closes"},
		{"11 window that nearly closes", `{schedule: "0 2 * * *", duration: 23h}`, ""},
		{"11 window of nearly a day, where one day is shorter", `{schedule: "30 2 * * *", duration: 23h45m, timeZone: Europe/Berlin}`, ""},
		{"11 longest window", `{schedule: "0 2 1 * *", duration: 168h}`, ""},
		{"11 window that is too long", `{schedule: "0 2 1 * *", duration: 169h}`, "must be 15m to 168h"},
		{"11 hour that the clocks skip", `{schedule: "30 2 * * *", duration: 3h, timeZone: Europe/Berlin}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			expectOne(t, one(clusterText("orders", "maintenance: ["+c.windows+"]")).Problems, c.want)
		})
	}
}

// What is not checked costs nothing: a file may have thousands.
func TestNoMoreIsLookedAtThanIsSaid(t *testing.T) {
	c := valid()
	c.Spec.Maintenance = make([]MaintenanceWindow, 1000)
	c.Spec.Etcd.Options = map[string]string{}
	for i := range 501 {
		c.Spec.Etcd.Options[fmt.Sprintf("x%d", i)] = "y"
	}
	got := lines(Validate(c))
	if windows := strings.Count(got, "].schedule: is missing"); windows != maxWindows || !strings.Contains(got, "has 1000 windows and at most 16 are allowed") {
		t.Errorf("%d windows are checked:\n%s", windows, got)
	}
	if !strings.Contains(got, "spec.etcd.options: has 501 options and at most 500 are allowed") || strings.Contains(got, "x1") {
		t.Errorf("options are checked:\n%s", got)
	}
	delete(c.Spec.Etcd.Options, "x500")
	if options := strings.Count(lines(Validate(c)), "spec.etcd.options"); options < 500 {
		t.Errorf("%d of 500 options are checked", options)
	}
}

func TestValidateSchedule(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"jitter below the interval", "jitter: 23h", ""},
		{"178 jitter as long as the interval", "jitter: 24h", "spec.jitter: is 24h0m0s and must be shorter than the time between two backups, at the least 24h0m0s"},
		{"negative jitter", "jitter: -1s", "spec.jitter: is -1s and must be 0s to 24h"},
		{"10 all are kept, so the days have no effect", "retention: {keepLast: 0, keepDaily: 7}", "warning: spec.retention.keepLast: is 0, which keeps all"},
		{"10 days alone", "retention: {keepDaily: 7}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			expectOne(t, one(scheduleOfURL(c.line)).Problems, c.want)
		})
	}
}

// 178: a jitter is shorter than the time between two backups, on whatever day of the
// year; a time that comes twice because the clocks go back is one.
func TestJitterIsShorterThanTheInterval(t *testing.T) {
	for _, c := range []struct{ schedule, zone, most string }{
		{"0 2 * * *", "", "24h0m0s"},
		{"@every 90m", "", "1h30m0s"},
		{"*/20 * * * *", "", "20m0s"},
		{"5,50 9 * * 1", "", "45m0s"},
		{"0 0 28,1 * *", "", "24h0m0s"},
		{"0 5 * * *", "Europe/Berlin", "23h0m0s"},
		{"0 2 * * *", "Europe/Berlin", "23h0m0s"},
		{"30 1 * * *", "America/New_York", "23h0m0s"},
		{"10,50 2 * * *", "Europe/Berlin", "20m0s"},
		{"30 1,2 * * *", "Europe/Berlin", "30m0s"},
		{"0 5 * * *", "Asia/Kolkata", "24h0m0s"},
	} {
		s := EtcdBackupSchedule{Metadata: Metadata{Name: "nightly", Namespace: "shop"}}
		s.Spec.Schedule, s.Spec.TimeZone = c.schedule, c.zone
		s.Spec.Verify.Restore, s.Spec.BackupTemplate.Source.ClusterName = DrillNever, "orders"
		most, err := time.ParseDuration(c.most)
		if err != nil {
			t.Fatal(err)
		}
		s.Spec.Jitter = &metav1.Duration{Duration: most}
		expectOne(t, validateSchedule(&s), "spec.jitter: is "+c.most+" and must be shorter than the time between two backups, at the least "+c.most)
		s.Spec.Jitter.Duration--
		expectOne(t, validateSchedule(&s), "")
	}
}

// 107, 111: a drill of encrypted backups needs a private key.
func TestValidateDrill(t *testing.T) {
	for _, c := range []struct{ name, verify, want string }{
		{"of backups in the clear", "{restore: Daily}", ""},
		{"with a key", "{restore: Always, decryption: {secretName: age}}", ""},
		{"once more", "{restore: Daily, again: 's3://b/1.db'}", ""},
		{"once more, of none", "{restore: Daily, again: 's3://b/{{ .UID }}.db'}", "spec.verify.again: is a template"},
		{"once more, at no place", "{restore: Daily, again: 1.db}", "spec.verify.again: "},
		{"once more, where there are none", "{restore: Never, again: 's3://b/1.db'}", "spec.verify.again: has no effect with restore Never"},
		{"with a Secret that is none", "{restore: Weekly, decryption: {secretName: A/B}}", "spec.verify.decryption.secretName: is not the name of a Secret"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expectOne(t, one(scheduleOfURL("verify: "+c.verify)).Problems, c.want)
		})
	}
	s := EtcdBackupSchedule{Metadata: Metadata{Name: "nightly", Namespace: "shop"}}
	s.Spec.Schedule, s.Spec.Verify.Restore = "@daily", DrillDaily
	s.Spec.BackupTemplate.Source.ClusterName = "orders"
	s.Spec.BackupTemplate.Destination.Encryption.Recipients = []string{"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"}
	expectOne(t, validateSchedule(&s), "spec.verify.decryption.secretName: is missing")
	s.Spec.Verify.Restore = DrillNever
	expectOne(t, validateSchedule(&s), "")
}

// scheduleOfURL is a schedule that needs no cluster with it.
func scheduleOfURL(lines ...string) string {
	text := scheduleText("nightly", "orders", "s3://b/{{ .UID }}", lines...)
	return strings.Replace(text, "clusterName: orders", `clusterURL: "https://etcd.example.com:2379"`, 1)
}

// expectOne wants one problem with a text, or none for "".
func expectOne(t *testing.T, problems []Problem, want string) {
	t.Helper()
	got := lines(problems)
	if want == "" && got != "" || want != "" && len(problems) != 1 || !strings.Contains(got, want) {
		t.Errorf("got:\n%s\nwant %q", got, want)
	}
}

// expectNoSecret wants no problem to repeat the secret of the tests.
func expectNoSecret(t *testing.T, problems []Problem) {
	t.Helper()
	if strings.Contains(lines(problems), "hunter2") {
		t.Errorf("a secret is repeated:\n%s", lines(problems))
	}
}

// What the author left out is filled with the safe choice, once and for all.
func TestDefaultsOfAllKinds(t *testing.T) {
	window := one(clusterText("orders", `maintenance: [{schedule: "0 2 * * 6", duration: 3h}]`))
	if len(window.Clusters) != 1 || window.Clusters[0].Spec.Maintenance[0].TimeZone != "UTC" {
		t.Errorf("the window's time zone is not UTC: %+v", window)
	}
	set := one(scheduleOfURL() + "---\n" + restoreText("again", "source: {objectURL: s3://b/x.db}"))
	if len(set.Schedules) != 1 || len(set.Restores) != 1 {
		t.Fatal(lines(set.Problems))
	}
	schedule, restore := set.Schedules[0].EtcdBackupSchedule, set.Restores[0].EtcdRestore
	template := restore.Spec.ClusterTemplate
	for _, c := range []struct{ field, got, want string }{
		{"timeZone", schedule.Spec.TimeZone, "UTC"},
		{"verify.restore", string(schedule.Spec.Verify.Restore), "Never"},
		{"clusterName", restore.Spec.ClusterName, "again"},
		{"clusterTemplate.tls.mode", string(template.TLS.Mode), "Managed"},
		{"clusterTemplate.state", string(template.State), "Running"},
		{"clusterTemplate.deletion.volumes", string(template.Deletion.Volumes), "Keep"},
		{"clusterTemplate.deletion.backup", string(template.Deletion.Backup), "Required"},
	} {
		if c.got != c.want {
			t.Errorf("%s is %q, want %q", c.field, c.got, c.want)
		}
	}
	before := hashOf(schedule) + hashOf(restore)
	schedule.setDefaults()
	restore.setDefaults()
	if hashOf(schedule)+hashOf(restore) != before {
		t.Error("defaulting twice changes something")
	}
}

func TestDefragmentationIsChecked(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", `{}`, ""},
		{"a mode", `{mode: Never}`, ""},
		{"a schedule", `{schedule: "0 3 * * 0", timeZone: Europe/Berlin}`, ""},
		{"another mode", `{mode: Sometimes}`, `spec.defragmentation.mode: "Sometimes" is not one of Auto, Never`},
		{"a schedule that is an interval", `{schedule: "@every 24h"}`, "spec.defragmentation.schedule: @every is an interval, not a time"},
		{"11 a bad schedule", `{schedule: "0 3 * *"}`, "spec.defragmentation.schedule"},
		{"a bad zone", `{schedule: "0 3 * * 0", timeZone: Europe/Nowhere}`, "spec.defragmentation.timeZone"},
		{"a zone for nothing", `{timeZone: UTC}`, "spec.defragmentation.timeZone: has no effect without a schedule"},
		{"a schedule for nothing", `{mode: Never, schedule: "0 3 * * 0"}`, "spec.defragmentation.schedule: has no effect with mode Never"},
		{"often", `{schedule: "0 * * * *"}`, "spec.defragmentation.schedule: runs every 1h0m0s"},
	} {
		got := lines(one(clusterText("orders", "defragmentation: "+c.text)).Problems)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	set := one(clusterText("orders", `defragmentation: {schedule: "0 3 * * 0"}`))
	if len(set.Clusters) != 1 || set.Clusters[0].Spec.Defragmentation.TimeZone != "UTC" {
		t.Errorf("the time zone is not UTC: %+v", set)
	}
}
