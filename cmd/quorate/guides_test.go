package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/schema"
)

// 203: the commands of the guide to migration do what they are said to do, with a snapshot of a
// real etcd of the release before the one that it is restored into, and of the same one, in a
// real S3 store; and the cluster that takes over from the restore is the one that it makes.
func TestMigrationGuideRuns(t *testing.T) {
	s3 := backuptest.StartS3(t)
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		snapshot, _ := savedSnapshot(t, version)
		place := "migration-" + version + "/"
		url := inS3(t, s3, place+"orders-last.db", snapshot)
		_, query, _ := strings.Cut(url, "?")
		page := guide(t, "migration.md", strings.NewReplacer(
			"s3://shop-backups/migration/", "s3://backups/"+place, "?region=eu-west-1'", "?"+query+"'"))
		page.follow("Adopt the snapshot")
		m, err := (backup.Store{Drivers: clouds.Drivers()}).Verify(t.Context(), url)
		if err != nil || m.Namespace != "shop" || m.Revision != savedRevision || m.Keys != savedKeys ||
			!strings.HasPrefix("v"+m.EtcdVersion, version[:5]) {
			t.Errorf("the snapshot is %+v, %v", m, err)
		}
		page.follow("Restore it")
		restored := readAll(t, filepath.Join(page.dir, "clusters"))
		page.follow("Hand over to the cluster's file")
		kept := readAll(t, filepath.Join(page.dir, "clusters"))
		if len(restored.Restores) != 1 || len(kept.Clusters) != 1 || len(kept.Restores) != 0 {
			t.Fatalf("%d restores, then %d clusters and %d restores",
				len(restored.Restores), len(kept.Clusters), len(kept.Restores))
		}
		made, is := specText(t, restored.Restores[0].Spec.ClusterTemplate), specText(t, kept.Clusters[0].Spec)
		if made != is {
			t.Errorf("the restore makes\n%s\nand the cluster is\n%s", made, is)
		}
	}, etcdtest.V35, etcdtest.V36)
}

// guide reads a page of docs, and writes the files that it shows, which its reader commits: the
// blocks of YAML that begin with the name of a file. Names of the page are replaced by those of the test.
func guide(t *testing.T, name string, names *strings.Replacer) *commandPage {
	t.Helper()
	path := filepath.Join("..", "..", "docs", name)
	p := newPage(t, path, names)
	p.begin()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range regexp.MustCompile("(?ms)^```yaml\n# ([\\w/.-]+\\.yaml)\n(.*?)^```").FindAllStringSubmatch(string(text), -1) {
		p.file(file[1], names.Replace(file[2]))
	}
	return p
}

// readAll are the objects of a directory, which must have no errors.
func readAll(t *testing.T, dir string) schema.Set {
	t.Helper()
	set, err := readPaths(t.Context(), &schema.Parser{}, []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// What quickstart's page says runs as it stands, at the top of the checkout.
func TestQuickstartPageRuns(t *testing.T) { exampleInCheckout(t, "quickstart") }

// So does what the page of the fleet says: each team's files keep to the policy of the platform,
// and staging is promoted by a change of one line.
func TestFleetPageRuns(t *testing.T) { exampleInCheckout(t, "fleet") }

// exampleInCheckout follows all commands of an example's page, in a clone that has the example
// and the policy where the checkout has them.
func exampleInCheckout(t *testing.T, example string) {
	t.Helper()
	root := filepath.Join("..", "..")
	page := newPage(t, filepath.Join(root, "examples", example, "README.md"), strings.NewReplacer())
	for _, dir := range []string{filepath.Join("examples", example), filepath.Join("deploy", "policy")} {
		if err := os.CopyFS(filepath.Join(page.dir, dir), os.DirFS(filepath.Join(root, dir))); err != nil {
			t.Fatal(err)
		}
	}
	page.begin()
	for _, heading := range page.order {
		page.follow(heading)
	}
}

// The glossary of the concepts is that of the package, and nothing else: a word has one meaning.
func TestTheGlossaryIsThatOfTheCode(t *testing.T) {
	code, err := os.ReadFile(filepath.Join("..", "..", "reconciler", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "concepts.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := glossary(string(code))
	_, got, _ := strings.Cut(string(page), "| word | meaning |\n|---|---|\n")
	if got, _, _ = strings.Cut(got, "\n\n"); strings.TrimRight(got, "\n") != want || strings.Count(want, "\n") < 15 {
		t.Errorf("docs/concepts.md has the words\n%s\nand reconciler/doc.go\n%s", got, want)
	}
}

// glossary is the list of words of a package's comment, as rows of a table.
func glossary(code string) string {
	_, words, _ := strings.Cut(code, "// # Words\n")
	words, _, _ = strings.Cut(words, "// # ")
	var rows []string
	for line := range strings.Lines(words) {
		line, listed := strings.CutPrefix(strings.TrimRight(line, "\n"), "//\t")
		switch word, meaning := strings.TrimSpace(line[:min(15, len(line))]), strings.TrimSpace(line[min(15, len(line)):]); {
		case !listed:
		case word == "":
			rows[len(rows)-1] = strings.TrimSuffix(rows[len(rows)-1], " |") + " " + meaning + " |"
		default:
			rows = append(rows, fmt.Sprintf("| **%s** | %s |", word, meaning))
		}
	}
	return strings.Join(rows, "\n")
}

// The commands of the guide to upgrades show what it says of a plan.
func TestUpgradeGuideRuns(t *testing.T) {
	guide(t, "upgrade.md", strings.NewReplacer()).follow("Look before you merge")
}

// 203: what the page on backups shows of a store is what is there.
func TestBackupPageRuns(t *testing.T) {
	guide(t, "backup.md", scheduledBackup(t)).follow("Inspect backups")
}

// The figures of the page on many clusters are those of the page on performance, which has them all.
func TestTheFiguresOfScaleAreThoseOfPerformance(t *testing.T) {
	rows := func(page, head string) map[string][]string {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(string(text), "| clusters | CPU cores at rest | memory | sockets | requests a second | "+head)
		table, _, _ = strings.Cut(table, "\n\n")
		found := map[string][]string{}
		for line := range strings.Lines(table) {
			if cells := strings.Split(line, " | "); len(cells) > 5 {
				found[strings.TrimPrefix(cells[0], "| ")] = cells
			}
		}
		return found
	}
	all, shown := rows("performance.md", "each member is asked within | commit to first action"), rows("scale.md", "commit to first action")
	if len(shown) < 3 {
		t.Fatalf("docs/scale.md shows %d rows", len(shown))
	}
	for clusters, row := range shown {
		want := all[clusters]
		if len(want) < 7 || !slices.Equal(row[:5], want[:5]) || strings.TrimRight(row[5], " |\n") != want[6] {
			t.Errorf("docs/scale.md shows %q, and docs/performance.md %q", row, want)
		}
	}
}
