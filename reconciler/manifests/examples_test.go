package manifests

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/schema"
)

// exampleFiles are the files of one example, as a user would give them.
func exampleFiles(t *testing.T, dir string) []schema.File {
	t.Helper()
	var files []schema.File
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" || strings.Contains(path, "/disaster-recovery/recovery/") {
			return err // the last takes the place of another file of its example
		}
		data, err := os.ReadFile(path)
		files = append(files, schema.File{Path: path, Data: data})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The rendered objects of every example stand byte for byte in testdata: a
// change of them restarts members of clusters that look like the example.
func TestExamplesRenderAsReviewed(t *testing.T) {
	dirs, err := filepath.Glob("../../examples/*")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, dir := range dirs {
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			set := schema.Parse(exampleFiles(t, dir))
			for _, p := range set.Problems {
				if !p.Warning {
					t.Errorf("%s", p)
				}
			}
			for _, c := range set.Clusters {
				// Two environments of one example may have a cluster of one name.
				place := strings.TrimSuffix(strings.TrimPrefix(c.Origin.File, dir+"/"), ".yaml")
				golden := filepath.Join("testdata", "examples", name, strings.ReplaceAll(place, "/", "-")+"-"+c.Metadata.Name+".yaml")
				seen[golden] = true
				compareManifests(t, golden, renderYAML(t, *c.EtcdCluster))
			}
		})
	}
	all, err := filepath.Glob("testdata/examples/*/*.yaml")
	if err != nil || len(all) != len(seen) {
		t.Errorf("testdata/examples has %d files for %d clusters (%v): remove what no example renders", len(all), len(seen), err)
	}
}

// compareManifests compares with a golden file, or rewrites it.
func compareManifests(t *testing.T, path, got string) {
	t.Helper()
	if *updateManifests {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update-manifests and read what it writes", err)
	}
	if got != string(want) {
		t.Errorf("%s differs; if members may restart for it, run the test with -update-manifests. Got:\n%s", path, got)
	}
}
