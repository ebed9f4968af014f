package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/schema"
)

// 203: the commands of the pages on migration do what they are said to do, in a
// repository with the old manifests, with a snapshot of a real etcd in a real S3 store.
func TestMigrationPagesRun(t *testing.T) {
	snapshot, _ := savedSnapshot(t, etcdtest.V34)
	s3 := backuptest.StartS3(t)
	for _, from := range []string{"coreos", "improbable"} {
		t.Run(from, func(t *testing.T) {
			example := filepath.Join("..", "..", "examples", "migrate-from-"+from)
			key := "orders-" + from + "/orders-last.db"
			url := inS3(t, s3, key, snapshot)
			_, query, _ := strings.Cut(url, "?")
			// The commands reach the store of the test, and the files name that of the page.
			names := strings.NewReplacer(
				"s3://shop-backups/orders/", "s3://backups/orders-"+from+"/", "?region=eu-west-1'", "?"+query+"'",
				"?endpoint=https://minio.shop.svc:9000&s3ForcePathStyle=true&region=eu-west-2'", "?"+query+"'",
			)
			page := pageAt(t, example, names, "before", "restore")
			page.follow("Convert")
			page.follow("Restore a snapshot")
			m, err := (backup.Store{Drivers: clouds.Drivers()}).Verify(t.Context(), url)
			if err != nil || m.Namespace != "shop-etcd" || m.Revision != savedRevision || m.Keys != savedKeys {
				t.Errorf("the snapshot is %+v, %v", m, err)
			}
		})
	}
}

// 203: what is restored is the cluster that takes over then: no member restarts.
func TestTheRestoreOfAMigrationHasTheSpecOfItsCluster(t *testing.T) {
	for _, from := range []string{"coreos", "improbable"} {
		specs := map[string]string{}
		for _, dir := range []string{"clusters", "restore"} {
			set, err := readPaths(t.Context(), &schema.Parser{}, []string{filepath.Join("..", "..", "examples", "migrate-from-"+from, dir)})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range set.Clusters {
				specs[dir] = specText(t, c.Spec)
			}
			for _, r := range set.Restores {
				specs[dir] = specText(t, r.Spec.ClusterTemplate)
			}
		}
		// As its page says: the old cluster has gone up to 3.4 before.
		want := strings.Replace(specs["clusters"], "3.2.32", "3.4.45", 1)
		if specs["restore"] == "" || specs["restore"] != want {
			t.Errorf("%s: the restore makes\n%s\nand the cluster is\n%s", from, specs["restore"], want)
		}
	}
}

// 203: the commands for a lost Kubernetes cluster, which need none.
func TestThePageForALostKubernetesClusterRuns(t *testing.T) {
	page := pageAt(t, filepath.Join("..", "..", "examples", "disaster-recovery"), scheduledBackup(t), "clusters", "recovery")
	page.follow("Before the night")
	page.follow("When the whole Kubernetes cluster is lost")
	set, err := readPaths(t.Context(), &schema.Parser{}, []string{filepath.Join(page.dir, "clusters")})
	if err != nil || len(set.Restores) != 1 || !strings.HasPrefix(set.Restores[0].Spec.Source.ObjectURL, "s3://backups/scheduled/shop/orders/1f2e3d4c.db?") || set.Restores[0].Spec.Source.Schedule != "" {
		t.Errorf("%d restores, %v: %+v", len(set.Restores), err, set.Restores)
	}
}

// scheduledBackup puts the backup that pages show into a real S3 store, and returns what the test calls the places
// of the pages.
func scheduledBackup(t *testing.T) (names *strings.Replacer) {
	t.Helper()
	snapshot, _ := savedSnapshot(t, etcdtest.V36)
	s3 := backuptest.StartS3(t)
	url := s3.URL("scheduled/shop/orders/1f2e3d4c.db")
	m := backup.Manifest{Namespace: "shop", Name: "orders", ClusterID: "c1", EtcdVersion: "3.6.16", Revision: savedRevision, Reason: "schedule orders", Schedule: "shop/orders", Time: time.Now()}
	if _, err := (backup.Store{Drivers: clouds.Drivers()}).Save(t.Context(), url, bytes.NewReader(snapshot), m); err != nil {
		t.Fatal(err)
	}
	_, query, _ := strings.Cut(url, "?")
	return strings.NewReplacer("s3://shop-backups/", "s3://backups/", "?region=eu-west-1'", "?"+query+"'")
}

// specText is a spec as JSON.
func specText(t *testing.T, spec schema.ClusterSpec) string {
	t.Helper()
	var out bytes.Buffer
	if err := cli.PrintJSON(&out, spec); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// commandPage is a page of the documentation, and the repository in which its reader
// works.
type commandPage struct {
	*testing.T
	dir   string
	env   []string
	parts map[string][]commandBlock
	// order has the headings that have commands, as they stand on the page.
	order []string
}

// commandBlock is commands, one a line, and the lines that they print, in this order,
// with others between them; "…" matches anything.
type commandBlock struct{ commands, prints []string }

// pageAt reads the page of an example, and commits some of its directories, with the
// names of the test in place of those of the example.
func pageAt(t *testing.T, example string, names *strings.Replacer, dirs ...string) *commandPage {
	t.Helper()
	p := newPage(t, filepath.Join(example, "README.md"), names)
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(example, dir, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no files (%v)", dir, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p.file(filepath.Join(dir, filepath.Base(file)), names.Replace(string(text)))
		}
	}
	p.begin()
	return p
}

// newPage reads a page, with the names of the test, for a repository that is empty yet.
func newPage(t *testing.T, path string, names *strings.Replacer) *commandPage {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := &commandPage{T: t, dir: filepath.Join(t.TempDir(), "clone"), parts: map[string][]commandBlock{}}
	p.env = append(os.Environ(), "PATH="+binaryDir(t)+":"+os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com")
	p.read(names.Replace(string(text)))
	return p
}

// file writes a file of the repository.
func (p *commandPage) file(name, text string) {
	p.Helper()
	to := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
		p.Fatal(err)
	}
}

// begin commits and pushes what is there.
func (p *commandPage) begin() {
	p.Helper()
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		p.Fatal(err)
	}
	p.command("git init -q -b main . && git init -q --bare -b main ../origin && git remote add origin ../origin && git add -A && git commit -q --allow-empty -m begin && git push -q origin main")
}

// read takes the page apart.
func (p *commandPage) read(text string) {
	heading, fence := "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		blocks := p.parts[heading]
		switch word, fenced := strings.CutPrefix(line, "```"); {
		case fenced:
			if fence = word; fence == "sh" {
				if p.parts[heading] = append(blocks, commandBlock{}); len(blocks) == 0 {
					p.order = append(p.order, heading)
				}
			}
		case fence == "sh":
			blocks[len(blocks)-1].commands = append(blocks[len(blocks)-1].commands, line)
		case fence == "text":
			blocks[len(blocks)-1].prints = append(blocks[len(blocks)-1].prints, strings.TrimSpace(line))
		case strings.HasPrefix(line, "## "):
			heading = line[3:]
		}
	}
}

// follow runs the commands under a heading.
func (p *commandPage) follow(heading string) {
	p.Helper()
	if len(p.parts[heading]) == 0 {
		p.Fatalf("the page has no commands under %q", heading)
	}
	for _, b := range p.parts[heading] {
		var printed strings.Builder
		for _, command := range b.commands {
			printed.WriteString(p.command(command))
		}
		lines := strings.Split(printed.String(), "\n")
		for _, want := range b.prints {
			pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*") + "$")
			for len(lines) > 0 && !pattern.MatchString(strings.TrimSpace(lines[0])) {
				lines = lines[1:]
			}
			if len(lines) == 0 {
				p.Fatalf("the page says that %q prints %q, and it prints\n%s", b.commands, want, printed.String())
			}
			lines = lines[1:]
		}
	}
}

// command runs one line. It must succeed: with 0, or where it is a plan, with the 2
// that says that there is something to do.
func (p *commandPage) command(line string) string {
	p.Helper()
	run := exec.CommandContext(p.Context(), "bash", "-c", line)
	run.Dir, run.Env = p.dir, p.env
	text, err := run.CombinedOutput()
	if code := run.ProcessState.ExitCode(); err != nil && (code != 2 || !strings.HasPrefix(line, "quorate plan ")) {
		p.Fatalf("%s: %v\n%s", line, err, text)
	}
	return string(text)
}
