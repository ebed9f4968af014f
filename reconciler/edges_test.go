package reconciler_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/quorate/quorate/"

// Dependencies that few packages may have. Each entry is a path, which stands for all packages below it as well.
var (
	cloudSDKs = []string{
		"github.com/aws", "github.com/Azure", "cloud.google.com",
		"gocloud.dev/blob/s3blob", "gocloud.dev/blob/azureblob", "gocloud.dev/blob/gcsblob",
	}
	etcdServer = []string{"go.etcd.io/etcd/server", "go.etcd.io/etcd/etcdutl"}
	kubernetes = []string{"k8s.io/client-go"}
	git        = []string{"github.com/go-git", "github.com/quorate/quorate/sources"}
)

// storeDrivers are the packages that exist to link a cloud SDK.
var storeDrivers = []string{
	"reconciler/backup/s3store", "reconciler/backup/googlestore", "reconciler/backup/azurestore",
	"reconciler/backup/clouds",
}

// edges are the dependencies that packages must not have, however far away. The linter (depguard in .golangci.yml)
// holds direct imports; a pure package can link three SDKs by one of its imports' imports.
var edges = []struct {
	// of are packages of this module and those below them, and but single ones that are left out.
	of, but []string
	// tests says that test binaries are meant, and not the packages.
	tests bool
	not   []string
}{
	{of: []string{"reconciler"}, but: storeDrivers, not: cloudSDKs},
	{of: []string{"schema", "sources", "docs", "deploy"}, not: slices.Concat(cloudSDKs, etcdServer)},
	{of: []string{"cmd/quorate/internal"}, not: slices.Concat(cloudSDKs, etcdServer)},
	{of: []string{"reconciler"}, but: []string{"reconciler/restore"}, not: etcdServer},
	{of: []string{"reconciler"}, not: git},
	{of: []string{"reconciler/plan", "reconciler/state", "reconciler/grants"}, not: kubernetes},

	// What a test binary links is compiled and linked by everybody who changes what it tests.
	{
		of: []string{"cmd", "reconciler", "schema", "sources", "docs", "test"},
		but: []string{
			// The program itself, and what has stores in the cloud for its subject.
			"cmd/quorate", "reconciler/backup", "reconciler/backup/s3store", "reconciler/scheduler", "reconciler/stores",
			"test/bench", "test/demo", "test/e2e", "test/lab",
		},
		tests: true, not: cloudSDKs,
	},
	{
		of: []string{"cmd", "reconciler", "schema", "sources", "docs", "test"},
		but: []string{
			// The program itself, and what reads the files of real members.
			"cmd/quorate", "reconciler/restore", "reconciler/jobs", "test/e2e",
		},
		tests: true, not: etcdServer,
	},
}

// A dependency that costs minutes of compiling and linking does not come in by the way.
func TestDependenciesStayOut(t *testing.T) {
	graph := listDependencies(t)
	for _, e := range edges {
		checked, suffix := 0, ""
		if e.tests {
			suffix = ".test"
		}
		for path := range graph {
			short, own := strings.CutPrefix(path, module)
			short, test := strings.CutSuffix(short, ".test")
			variant := strings.Contains(path, " ") // such as "quorate/reconciler [quorate/reconciler.test]"
			if !own || variant || test != e.tests || !below(short, e.of) || slices.Contains(e.but, short) {
				continue
			}
			checked++
			if chain := graph.chain(path, e.not); chain != nil {
				t.Errorf("%s must not depend on %s:\n\t%s", path, chain[len(chain)-1], strings.Join(chain, "\n\t"))
			}
		}
		if checked == 0 {
			t.Errorf("no package is checked by the rule for %q", e.of)
		}
		for _, name := range e.but {
			if graph.chain(module+name+suffix, e.not) == nil {
				t.Errorf("%s need not be left out of the rule for %q any more", name+suffix, e.of)
			}
		}
	}
}

// dependencies are the imports of each package, and of each test binary under the name that Go gives it.
type dependencies map[string][]string

// listDependencies asks Go for the packages of the module, its tests, and all that they import.
func listDependencies(t *testing.T) dependencies {
	t.Helper()
	cmd := exec.Command("go", "list", "-test", "-deps", "-json=ImportPath,Dir,Imports", "./...")
	cmd.Dir = ".."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, &stderr)
	}
	graph := dependencies{}
	for read := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir string
			Imports         []string
		}
		if err := read.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		graph[p.ImportPath] = append([]string{}, p.Imports...)
		if strings.HasPrefix(p.ImportPath, module) {
			// By this the result of the test counts as an old one when a file there has changed.
			if _, err := os.ReadDir(p.Dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	return graph
}

// chain returns the shortest way by which a package comes to one of others, nil for none.
func (d dependencies) chain(from string, to []string) []string {
	by, next := map[string]string{from: ""}, []string{from}
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		if below(at, to) {
			chain := []string{at}
			for at = by[at]; at != ""; at = by[at] {
				chain = append(chain, at)
			}
			slices.Reverse(chain)
			return chain
		}
		for _, path := range d[at] {
			if _, known := by[path]; !known {
				by[path] = at
				next = append(next, path)
			}
		}
	}
	return nil
}

// below reports whether a path is one of others, or below it.
func below(path string, others []string) bool {
	return slices.ContainsFunc(others, func(other string) bool {
		rest, ok := strings.CutPrefix(path, other)
		return ok && (rest == "" || rest[0] == '/')
	})
}
