package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/schema"
)

// brokenFile speaks of quorate, and nothing else of it can be read.
const brokenFile = "apiVersion: quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: [\n"

// clusterFile is a good file for one cluster.
func clusterFile(name, version string) string {
	return "apiVersion: quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: " + name + ", namespace: shop}\nspec:\n" +
		"  version: \"" + version + "\"\n  replicas: 3\n  storage: {size: 8Gi}\n"
}

// parseFiles parses files by path.
func parseFiles(files map[string]string) schema.Set {
	var list []schema.File
	for _, path := range slices.Sorted(maps.Keys(files)) {
		list = append(list, schema.File{Path: path, Data: []byte(files[path])})
	}
	return schema.Parse(list)
}

// summary is each wish as "namespace/name version" or "namespace/name held".
func summary(clusters []desired.Cluster) []string {
	var list []string
	for _, c := range clusters {
		if len(c.Problems) > 0 {
			list = append(list, c.Key()+" held")
			continue
		}
		list = append(list, c.Key()+" "+c.Spec.Version)
	}
	slices.Sort(list)
	return list
}

// A bad file holds what it names, or named before, and hides no good one.
func TestWishesOfBadFiles(t *testing.T) {
	good := map[string]string{
		"orders.yaml": clusterFile("orders", "3.6.16"),
		"both.yaml":   clusterFile("users", "3.6.16") + "---\n" + clusterFile("carts", "3.6.16"),
	}
	for name, test := range map[string]struct {
		file, content string
		want          []string
	}{
		"nothing is bad": {"orders.yaml", good["orders.yaml"], []string{"shop/carts 3.6.16", "shop/orders 3.6.16", "shop/users 3.6.16"}},
		"a bad version holds its cluster": {
			"orders.yaml", clusterFile("orders", "3.6"), []string{"shop/carts 3.6.16", "shop/orders held", "shop/users 3.6.16"},
		},
		"a name that cannot be read holds what stood in the file": {
			"orders.yaml", brokenFile, []string{"shop/carts 3.6.16", "shop/orders held", "shop/users 3.6.16"},
		},
		"nothing can be read": {"both.yaml", brokenFile, []string{"shop/carts held", "shop/orders 3.6.16", "shop/users held"}},
		"one good document in a broken file": {
			"both.yaml", clusterFile("users", "3.6.12") + "---\n" + brokenFile, []string{"shop/carts held", "shop/orders 3.6.16", "shop/users 3.6.12"},
		},
		"declared twice": {
			"both.yaml", clusterFile("orders", "3.6.12"), []string{"shop/orders held"},
		},
		"a file that is refused, whose names are not in the usual form": {
			"both.yaml", "# quorate.dev\n" + strings.Repeat("# too large\n", 100_000), []string{"shop/carts held", "shop/orders 3.6.16", "shop/users held"},
		},
		"a cluster that left":    {"both.yaml", clusterFile("users", "3.6.16"), []string{"shop/orders 3.6.16", "shop/users 3.6.16"}},
		"a bad file that is new": {"new.yaml", brokenFile, []string{"shop/carts 3.6.16", "shop/orders 3.6.16", "shop/users 3.6.16"}},
		"another group's kind":   {"new.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: orders}\n", []string{"shop/carts 3.6.16", "shop/orders 3.6.16", "shop/users 3.6.16"}},
		"an unknown kind of ours": {
			"new.yaml", "apiVersion: quorate.dev/v1alpha1\nkind: EtcdClutser\nmetadata: {name: orders, namespace: shop}\n",
			[]string{"shop/carts 3.6.16", "shop/orders 3.6.16", "shop/users 3.6.16"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := origins(parseFiles(good), nil)
			files := maps.Clone(good)
			files[test.file] = test.content
			got := wishes(parseFiles(files), "0a1b2c3", before)
			if list := summary(got); !slices.Equal(list, test.want) {
				t.Errorf("got  %q\nwant %q", list, test.want)
			}
			for _, c := range got {
				if c.Commit != "0a1b2c3" {
					t.Errorf("%s comes from commit %q", c.Key(), c.Commit)
				}
			}
		})
	}
}

// While a file stays broken, what it held stays held, commit after commit.
func TestOriginsOutliveABrokenFile(t *testing.T) {
	good := map[string]string{"orders.yaml": clusterFile("orders", "3.6.16")}
	broken := map[string]string{"orders.yaml": brokenFile}
	seen := origins(parseFiles(good), nil)
	for range 3 {
		if list := summary(wishes(parseFiles(broken), "c", seen)); !slices.Equal(list, []string{"shop/orders held"}) {
			t.Errorf("wishes %q", list)
		}
		seen = origins(parseFiles(broken), seen)
	}
	moved := map[string]string{"elsewhere.yaml": clusterFile("orders", "3.6.16")}
	seen = origins(parseFiles(moved), seen)
	if o := seen["shop/orders"]; len(seen) != 1 || o.File != "elsewhere.yaml" {
		t.Errorf("origins %v", seen)
	}
	if seen = origins(parseFiles(nil), seen); len(seen) != 0 {
		t.Errorf("origins of nothing: %v", seen)
	}
}

func TestHeldClusterAlwaysHasAProblem(t *testing.T) {
	c := heldCluster("shop", "orders", "c", nil)
	if c.Key() != "shop/orders" || len(c.Problems) != 1 || c.Problems[0] == "" {
		t.Errorf("%+v", c)
	}
	c = heldCluster("shop", "orders", "c", []schema.Problem{{File: "orders.yaml", Line: 5, Field: "spec.version", Message: "no"}})
	if !slices.Equal(c.Problems, []string{"orders.yaml:5: spec.version: no"}) {
		t.Errorf("problems %q", c.Problems)
	}
}

// I10: the backup that a restore names is not removed, and none at all is while a
// document that may be a restore has errors.
func TestNeededBy(t *testing.T) {
	const url = "s3://backups/a.db"
	restore := "apiVersion: quorate.dev/v1alpha1\nkind: EtcdRestore\nmetadata: {name: copy, namespace: shop}\nspec: {source: {objectURL: '" + url +
		"'}, clusterTemplate: {version: \"3.6.16\", replicas: 3, storage: {size: 1Gi}}}\n"
	for name, c := range map[string]struct {
		text, doubt string
		needed      int
	}{
		"a restore":                  {restore, "", 1},
		"one with errors":            {restore + "---\n" + strings.Replace(restore, "copy", "other", 1) + "oops: 1\n", "the document at a.yaml:5 has errors", 1},
		"a document that is no YAML": {"kind: [quorate.dev", "the document at a.yaml:1 has errors", 0},
		"a cluster with errors":      {clusterFile("orders", "latest"), "", 0},
	} {
		needed, doubt := neededBy(parseFiles(map[string]string{"a.yaml": c.text}))
		if len(needed) != c.needed || doubt != c.doubt || c.needed > 0 && needed[url] != "EtcdRestore shop/copy" {
			t.Errorf("%s: %q, doubt %q", name, needed, doubt)
		}
	}
}

func TestCountProblems(t *testing.T) {
	problems := []schema.Problem{{}, {Warning: true}, {Warning: true}}
	if text, errors := countProblems(problems); text != "1 error, 2 warnings" || errors != 1 {
		t.Errorf("%q, %d", text, errors)
	}
}

func TestIndent(t *testing.T) {
	if got := indent("a\nb\n"); got != "  a\n  b\n" || !strings.HasSuffix(got, "\n") {
		t.Errorf("%q", got)
	}
}
