package schema

import (
	"fmt"
	"strings"
	"testing"
)

// clusterText is a cluster with more lines of its spec.
func clusterText(name string, lines ...string) string {
	text := "apiVersion: quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: " + name + ", namespace: shop}\n" +
		"spec:\n  version: \"3.6.16\"\n  replicas: 3\n  storage: {size: 8Gi}\n"
	for _, line := range lines {
		text += "  " + line + "\n"
	}
	return text
}

// scheduleText is a schedule of a cluster with more lines of its spec.
func scheduleText(name, cluster, destination string, lines ...string) string {
	text := "apiVersion: quorate.dev/v1alpha1\nkind: EtcdBackupSchedule\nmetadata: {name: " + name + ", namespace: shop}\n" +
		"spec:\n  schedule: \"0 2 * * *\"\n  backupTemplate:\n    source: {clusterName: " + cluster + "}\n"
	if destination != "" {
		text += fmt.Sprintf("    destination: {objectURLTemplate: %q}\n", destination)
	}
	for _, line := range lines {
		text += "  " + line + "\n"
	}
	return text
}

// withSecret gives the destination of a schedule credentials of its own.
func withSecret(text string) string {
	return strings.Replace(text, "\"}\n", "\", credentials: {secretName: store}}\n", 1)
}

// backupText is a backup with the lines of its spec.
func backupText(lines ...string) string {
	return "apiVersion: quorate.dev/v1alpha1\nkind: EtcdBackup\nmetadata: {name: once, namespace: shop}\nspec:\n  " + strings.Join(lines, "\n  ") + "\n"
}

// restoreText is a restore with the lines of its spec before the template.
func restoreText(name string, lines ...string) string {
	return "apiVersion: quorate.dev/v1alpha1\nkind: EtcdRestore\nmetadata: {name: " + name + ", namespace: shop}\nspec:\n  " +
		strings.Join(lines, "\n  ") + "\n  clusterTemplate: {version: \"3.6.16\", replicas: 3, storage: {size: 8Gi}}\n"
}

// parseTexts parses documents, each in its own file: a.yaml, then b.yaml.
func parseTexts(texts ...string) Set {
	var files []File
	for i, text := range texts {
		files = append(files, File{Path: string(rune('a'+i)) + ".yaml", Data: []byte(text)})
	}
	return Parse(files)
}

// counts is how many objects of each kind are good, and how many are held.
func counts(s Set) string {
	return fmt.Sprintf("%d clusters, %d backups, %d schedules, %d restores, %d held",
		len(s.Clusters), len(s.Backups), len(s.Schedules), len(s.Restores), len(s.Held))
}

func TestAllKindsParse(t *testing.T) {
	s := parseTexts(
		clusterText("orders"), backupText("source: {clusterName: orders}"),
		scheduleText("nightly", "orders", "s3://b/{{ .Name }}/{{ .UID }}"),
		restoreText("again", "source: {schedule: nightly, before: 2026-11-20T08:00:00Z}"))
	if got := counts(s); got != "1 clusters, 1 backups, 1 schedules, 1 restores, 0 held" || len(s.Problems) > 0 {
		t.Fatalf("got %s and:\n%s", got, lines(s.Problems))
	}
	r := s.Restores[0]
	if r.Spec.ClusterName != "again" || r.Spec.ClusterTemplate.TLS.Mode != TLSManaged || r.Spec.Source.Before.Year() != 2026 {
		t.Errorf("the restore: %+v", r.Spec)
	}
	if schedule := s.Schedules[0].Spec; schedule.TimeZone != "UTC" || schedule.Verify.Restore != DrillNever {
		t.Errorf("the schedule: %+v", schedule)
	}
}

// What documents declare about each other, wherever they are.
func TestCrossFile(t *testing.T) {
	const place = "s3://b/{{ .Name }}/{{ .UID }}"
	stored := `backup: {destination: {objectURLTemplate: "` + place + `"}}`
	for _, c := range []struct {
		name  string
		texts []string
		// want is a part of the problems; "" for none.
		want string
		// good is what stays good.
		good string
	}{
		{
			"schedule of a cluster that is there",
			[]string{scheduleText("nightly", "orders", place), clusterText("orders")},
			"", "1 clusters, 0 backups, 1 schedules, 0 restores, 0 held",
		},
		{
			"schedule of a cluster that is not",
			[]string{scheduleText("nightly", "ordres", place), clusterText("orders")},
			"a.yaml:7:14: spec.backupTemplate.source.clusterName: there is no EtcdCluster shop/ordres in Git, did you mean orders?",
			"1 clusters, 0 backups, 0 schedules, 0 restores, 1 held",
		},
		{
			"backup of a cluster in another namespace",
			[]string{backupText("source: {clusterName: orders}"), strings.Replace(clusterText("orders"), "shop", "web", 1)},
			"orders is not in namespace shop but in web: move one of the two", "1 clusters, 0 backups, 0 schedules, 0 restores, 1 held",
		},
		{
			"schedule of a cluster whose file is bad",
			[]string{scheduleText("nightly", "orders", place), clusterText("orders", "replica: 3")},
			"b.yaml:8:3: spec.replica: is not a known field", "0 clusters, 0 backups, 1 schedules, 0 restores, 1 held",
		},
		{
			"schedule of a deleted cluster",
			[]string{scheduleText("nightly", "orders", place), clusterText("orders", "state: Deleted")},
			"warning: spec.backupTemplate.source.clusterName: orders has state: Deleted", "1 clusters, 0 backups, 1 schedules, 0 restores, 0 held",
		},
		{
			"114 two schedules write to one place",
			[]string{scheduleText("nightly", "orders", place), scheduleText("hourly", "orders", place), clusterText("orders")},
			"spec.backupTemplate.destination: the backups go to the same place as those of EtcdBackupSchedule shop/hourly at b.yaml:1",
			"1 clusters, 0 backups, 0 schedules, 0 restores, 2 held",
		},
		{
			"114 two schedules take the place of their cluster",
			[]string{scheduleText("nightly", "orders", ""), scheduleText("hourly", "orders", ""), clusterText("orders", stored)},
			"the backups go to the same place", "1 clusters, 0 backups, 0 schedules, 0 restores, 2 held",
		},
		{
			"two schedules, each in its directory",
			[]string{scheduleText("nightly", "orders", "s3://b/n/{{ .UID }}"), scheduleText("hourly", "orders", "s3://b/h/{{ .UID }}"), clusterText("orders")},
			"", "1 clusters, 0 backups, 2 schedules, 0 restores, 0 held",
		},
		{
			"114 two clusters write to one place",
			[]string{
				clusterText("orders", `backup: {destination: {objectURLTemplate: "s3://b/{{ .UID }}"}}`),
				clusterText("basket", `backup: {destination: {objectURLTemplate: "s3://b/{{ .UID }}"}}`),
			},
			"warning: spec.backup.destination: the backups go to the same place as those of EtcdCluster shop/basket at b.yaml:1", "2 clusters, 0 backups, 0 schedules, 0 restores, 0 held",
		},
		{
			"118 restore into a cluster that is in Git",
			[]string{restoreText("again", "source: {objectURL: s3://b/x.db}", "clusterName: orders"), clusterText("orders")},
			"a.yaml:6:3: spec.clusterName: EtcdCluster shop/orders is declared at b.yaml:1, and a restore never overwrites a cluster",
			"1 clusters, 0 backups, 0 schedules, 0 restores, 1 held",
		},
		{
			"restore in the place of a deleted cluster",
			[]string{restoreText("again", "source: {objectURL: s3://b/x.db}", "clusterName: orders"), clusterText("orders", "state: Deleted")},
			"", "1 clusters, 0 backups, 0 schedules, 1 restores, 0 held",
		},
		{
			"schedule of a deleted cluster that a restore takes the place of",
			[]string{scheduleText("nightly", "orders", place), restoreText("again", "source: {schedule: nightly}", "clusterName: orders"), clusterText("orders", "state: Deleted")},
			"", "1 clusters, 0 backups, 1 schedules, 1 restores, 0 held",
		},
		{
			"two restores make one cluster",
			[]string{
				restoreText("one", "source: {objectURL: s3://b/x.db}", "clusterName: new"),
				restoreText("two", "source: {objectURL: s3://b/y.db}", "clusterName: new"),
			},
			"spec.clusterName: shop/new is restored by EtcdRestore shop/two at b.yaml:1, too", "0 clusters, 0 backups, 0 schedules, 0 restores, 2 held",
		},
		{
			"restore of a schedule that is not",
			[]string{restoreText("again", "source: {schedule: nightly}")},
			"spec.source.schedule: there is no EtcdBackupSchedule shop/nightly in Git", "0 clusters, 0 backups, 0 schedules, 0 restores, 1 held",
		},
		{
			"restore of a cluster that is gone",
			[]string{restoreText("again", "source: {clusterName: orders}")},
			"a.yaml:5:12: warning: spec.source.clusterName: there is no EtcdCluster shop/orders in Git; the backups of a cluster that is gone",
			"0 clusters, 0 backups, 0 schedules, 1 restores, 0 held",
		},
		{
			"suspended schedule of a deleted cluster",
			[]string{scheduleText("nightly", "orders", place, "suspend: true"), clusterText("orders", "state: Deleted")},
			"", "1 clusters, 0 backups, 1 schedules, 0 restores, 0 held",
		},
		{
			"schedule of a cluster that a restore makes",
			[]string{scheduleText("nightly", "new", place), restoreText("again", "source: {objectURL: s3://b/x}", "clusterName: new")},
			"", "0 clusters, 0 backups, 1 schedules, 1 restores, 0 held",
		},
		{
			"two schedules, each in its store",
			[]string{
				withSecret(scheduleText("nightly", "orders", place+"?endpoint=https://a&region=x")),
				withSecret(scheduleText("hourly", "orders", place+"?endpoint=https://b&region=x")), clusterText("orders"),
			},
			"", "1 clusters, 0 backups, 2 schedules, 0 restores, 0 held",
		},
		{
			"114 two schedules in one store, named in another order",
			[]string{
				withSecret(scheduleText("nightly", "orders", place+"?endpoint=https://a&region=x")),
				withSecret(scheduleText("hourly", "orders", place+"?region=x&endpoint=https://a")), clusterText("orders"),
			},
			"the backups go to the same place", "1 clusters, 0 backups, 0 schedules, 0 restores, 2 held",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parseTexts(c.texts...)
			if got := counts(s); got != c.good || (c.want == "") != (len(s.Problems) == 0) || !strings.Contains(lines(s.Problems), c.want) {
				t.Errorf("got %s and:\n%s\nwant %s and %q", got, lines(s.Problems), c.good, c.want)
			}
		})
	}
}

func TestManyFilesOneBad(t *testing.T) {
	var files []File
	for i := range 100 {
		files = append(files, File{Path: fmt.Sprintf("%03d.yaml", i), Data: []byte(clusterText(fmt.Sprintf("c%03d", i)))})
	}
	files = append(files, File{Path: "bad.yaml", Data: []byte(clusterText("bad", "replica: 1"))})
	s := Parse(files)
	if len(s.Clusters) != 100 || len(s.Held) != 1 || len(s.Problems) != 1 {
		t.Errorf("14 one bad file among 100 good: %s and:\n%s", counts(s), lines(s.Problems))
	}
}

// Too much together is refused before it is parsed, and held where it can be
// named; what came before it stays good.
func TestTooMuchTogether(t *testing.T) {
	many := strings.Repeat("---\n# quorate.dev\n", 999)
	large := "# quorate.dev\n" + strings.Repeat("# x\n", 1<<18-4)
	last := "apiVersion: quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata:\n  name: last\n  namespace: shop\n"
	for _, c := range []struct {
		name, text, want string
		count            int
	}{
		{"14 documents", many, "z.yaml: the files up to this one have more than 50000 documents together", 51},
		{"14 bytes", large, "z.yaml: the files up to this one have more than 67108864 bytes (64 MiB) together", 65},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := []File{{Path: "a.yaml", Data: []byte(good)}, {Path: "z.yaml", Data: []byte(last)}}
			for i := range c.count {
				files = append(files, File{Path: fmt.Sprintf("m%03d.yaml", i), Data: []byte(c.text)})
			}
			s := Parse(files)
			if !strings.Contains(lines(s.Problems), c.want) || names(s) != "shop/orders" || !strings.Contains(heldNames(s), "EtcdCluster shop/last") {
				t.Errorf("clusters %q, held %q and:\n%s", names(s), heldNames(s), lines(s.Problems))
			}
		})
	}
}

func TestParse23ManyDeclarationsAreCounted(t *testing.T) {
	s := parseTexts(good, good, good, good, good, good, good, good)
	for i, want := range map[int]string{
		0: "at b.yaml:1, c.yaml:1, d.yaml:1, e.yaml:1, f.yaml:1, 2 more:",
		2: "at a.yaml:1, b.yaml:1, d.yaml:1, e.yaml:1, f.yaml:1, 2 more:",
		7: "at a.yaml:1, b.yaml:1, c.yaml:1, d.yaml:1, e.yaml:1, 2 more:",
	} {
		if got := s.Problems[i].Message; !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

// The search for similar names is bounded, but every missing one is reported.
func TestManyMissingClusters(t *testing.T) {
	var texts strings.Builder
	for i := range 150 {
		texts.WriteString("---\n" + scheduleText(fmt.Sprintf("s%d", i), "ordres", fmt.Sprintf("s3://b/%d/{{ .UID }}", i)))
	}
	got := lines(parseTexts(texts.String(), clusterText("orders")).Problems)
	if missing, hints := strings.Count(got, "there is no EtcdCluster shop/ordres"), strings.Count(got, "did you mean orders?"); missing != 150 || hints != 100 {
		t.Errorf("%d are missing, want 150, and %d have a hint, want 100", missing, hints)
	}
}
