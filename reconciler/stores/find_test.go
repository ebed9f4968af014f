package stores

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/schema"
)

// 126: the newest backup of a schedule or a cluster, or the newest before a time.
func TestNewestBackup(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := func(object string, hours int, revision int64) backup.Manifest {
		return backup.Manifest{Object: object, Namespace: "shop", Name: "orders", Schedule: "shop/nightly", Revision: revision, Time: noon.Add(time.Duration(hours) * time.Hour)}
	}
	other := func(m backup.Manifest, edit func(*backup.Manifest)) backup.Manifest { edit(&m); return m }
	all := []backup.Manifest{
		at("old", -9, 9), at("twin", -1, 10), at("new", -1, 100), at("older", -20, 1000),
		other(at("else's", 1, 1), func(m *backup.Manifest) { m.Name = "users" }),
		other(at("elsewhere", 1, 1), func(m *backup.Manifest) { m.Namespace = "lab" }),
		other(at("bad", 1, 1), func(m *backup.Manifest) { m.Drill.Result = "its hash differs" }),
		other(at("upgrade", 0, 1), func(m *backup.Manifest) { m.Schedule, m.Drill.Result = "", backup.DrillPassed }),
	}
	for name, c := range map[string]struct {
		from   desired.RestoreFrom
		before time.Time
		want   string
	}{
		"of the cluster":          {desired.RestoreFrom{Cluster: "orders"}, time.Time{}, "upgrade"},
		"of the schedule":         {desired.RestoreFrom{Cluster: "orders", Schedule: "shop/nightly"}, time.Time{}, "new"},
		"before a time":           {desired.RestoreFrom{Cluster: "orders"}, noon.Add(-time.Hour), "old"},
		"just after it":           {desired.RestoreFrom{Cluster: "orders"}, noon.Add(-time.Hour + 1), "new"},
		"before there was any":    {desired.RestoreFrom{Cluster: "orders"}, noon.Add(-100 * time.Hour), ""},
		"of a schedule with none": {desired.RestoreFrom{Cluster: "orders", Schedule: "shop/weekly"}, time.Time{}, ""},
	} {
		got := ""
		source := schema.RestoreSource{}
		if !c.before.IsZero() {
			source.Before = &metav1.Time{Time: c.before}
		}
		if candidates := Candidates(all, "shop", c.from, source); len(candidates) > 0 {
			m, err := newest(candidates, nil, noon)
			if err != nil {
				t.Fatal(err)
			}
			got = m.Object
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestBackupsPlace(t *testing.T) {
	for template, want := range map[string]string{
		"s3://b/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db?region=eu": "s3://b/shop/orders/?region=eu",
		"s3://b/{{ .Name }}-{{ .UID }}.db":                            "s3://b/",
		"gs://b/{{ .Name }}/{{ .Version }}/{{ .UID }}/x.db":           "gs://b/orders/",
		"s3://b/{{ .Name }}/all/{{ .UID }}-{{ .Version }}":            "s3://b/orders/all/",
	} {
		if got, err := backupsPlace(template, "shop", "orders"); err != nil || got != want {
			t.Errorf("%s: %q, want %q: %v", template, got, want, err)
		}
	}
	if _, err := backupsPlace("", "shop", "orders"); err == nil || !strings.Contains(err.Error(), "name one with spec.source.objectURL") {
		t.Errorf("%v", err)
	}
}
