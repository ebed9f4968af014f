package convert

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/schema"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Each file of testdata is converted as one input. The manifests are those that
// the two projects document, and every field of their types, in files of our own.
func TestConvertGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test data (%v)", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			result := Convert([]schema.File{{Path: filepath.Base(file), Data: data}})
			assertValid(t, result)
			assertGolden(t, strings.TrimSuffix(file, ".yaml")+".golden", render(result))
		})
	}
}

// render is everything that a result holds.
func render(r Result) string {
	var out strings.Builder
	for _, d := range r.Documents {
		fmt.Fprintf(&out, "---\n%s", d.Text)
	}
	out.WriteString("--- notes\n")
	for _, n := range append(r.Unreadable, r.Notes...) {
		fmt.Fprintln(&out, n)
	}
	fmt.Fprintf(&out, "--- %d ignored\n", r.Ignored)
	return out.String()
}

func assertGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run with -update and read the difference. Got:\n%s", path, got)
	}
}

// assertValid gives what is not a comment to the schema, as one repository.
func assertValid(t *testing.T, r Result) {
	t.Helper()
	var all strings.Builder
	working := 0
	for _, d := range r.Documents {
		all.WriteString("---\n" + d.Text)
		if !d.LeftOut {
			working++
		}
	}
	set := schema.Parse([]schema.File{{Path: "all.yaml", Data: []byte(all.String())}})
	for _, p := range append(set.Problems, set.Unreadable...) {
		if !p.Warning {
			t.Errorf("the result is refused: %s\n%s", p, all.String())
		}
	}
	if good := len(set.Clusters) + len(set.Backups) + len(set.Schedules) + len(set.Restores); good != working {
		t.Errorf("the schema finds %d objects, not %d", good, working)
	}
}

// A URL that holds a password is repeated neither in a note nor in a document,
// not even in one that is a comment.
func TestSecretsAreNotRepeated(t *testing.T) {
	for _, file := range []string{"coreos-backups.yaml", "improbable.yaml"} {
		data, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), "hunter2") {
			t.Errorf("%s has no secret to hide", file)
		}
		if text := render(Convert([]schema.File{{Path: file, Data: data}})); strings.Contains(text, "hunter2") {
			t.Errorf("%s: the secret is repeated:\n%s", file, text)
		}
	}
}

// The result depends on the files, not on their order.
func TestOrderOfFilesDoesNotMatter(t *testing.T) {
	manifest := func(name string) schema.File {
		return schema.File{Path: name + ".yaml", Data: []byte("apiVersion: etcd.improbable.io/v1alpha1\nkind: EtcdCluster\nmetadata: {name: " + name + "}\nspec: {replicas: 1, version: 3.4.9}\n")}
	}
	a, b := manifest("a"), manifest("b")
	one, other := render(Convert([]schema.File{a, b})), render(Convert([]schema.File{b, a}))
	if one != other {
		t.Errorf("two results:\n%s\n%s", one, other)
	}
}

// Two files that declare one object give two documents of one name: neither may
// be used, since which one is meant only the author knows.
func TestDuplicatesAreLeftOut(t *testing.T) {
	data := []byte("apiVersion: etcd.improbable.io/v1alpha1\nkind: EtcdCluster\nmetadata: {name: twice}\nspec: {replicas: 1, version: 3.4.9}\n")
	r := Convert([]schema.File{{Path: "a.yaml", Data: data}, {Path: "b.yaml", Data: data}})
	for _, d := range r.Documents {
		if !d.LeftOut {
			t.Errorf("a duplicate is used:\n%s", d.Text)
		}
	}
	if len(r.Documents) != 2 {
		t.Errorf("%d documents, not 2", len(r.Documents))
	}
}

func FuzzConvert(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		for part := range strings.SplitSeq(string(data), "---\n") {
			f.Add([]byte(part))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		assertValid(t, Convert([]schema.File{{Path: "f.yaml", Data: data}}))
	})
}

// The examples are what the command makes of the files next to them.
func TestExamplesAreConverted(t *testing.T) {
	for _, example := range []string{"migrate-from-coreos", "migrate-from-improbable"} {
		root := filepath.Join("..", "..", "examples", example)
		result := Convert(readAll(t, root, "before"))
		assertValid(t, result)
		written := map[string]bool{}
		for _, f := range readAll(t, root, "clusters") {
			written[string(f.Data)] = true
		}
		if len(written) != len(result.Documents) {
			t.Errorf("%s/clusters has %d files for %d documents", example, len(written), len(result.Documents))
		}
		for _, d := range result.Documents {
			if d.LeftOut || !written[d.Text] {
				t.Errorf("in examples/%s run: quorate convert --dir clusters before. It misses:\n%s", example, d.Text)
			}
		}
	}
}

// readAll reads the files of a directory, named as from the root.
func readAll(t *testing.T, root, dir string) []schema.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, dir, "*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files in %s/%s (%v)", root, dir, err)
	}
	var files []schema.File
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, schema.File{Path: dir + "/" + filepath.Base(name), Data: data})
	}
	return files
}
