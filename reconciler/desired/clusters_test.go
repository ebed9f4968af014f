package desired_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/desired/desiredtest"
	"github.com/quorate/quorate/schema"
)

// A bad file holds what it names, or named before, and hides no good one.
func TestClustersOfBadFiles(t *testing.T) {
	good := map[string]string{
		"orders.yaml": desiredtest.ClusterFile("orders", "3.6.16"),
		"both.yaml":   desiredtest.ClusterFile("users", "3.6.16") + "---\n" + desiredtest.ClusterFile("carts", "3.6.16"),
	}
	for name, test := range map[string]struct {
		file, content string
		want          []string
	}{
		"nothing is bad": {"orders.yaml", good["orders.yaml"], []string{"shop/carts 3.6.16", "shop/orders 3.6.16", "shop/users 3.6.16"}},
		"a bad version holds its cluster": {
			"orders.yaml", desiredtest.ClusterFile("orders", "3.6"), []string{"shop/carts 3.6.16", "shop/orders held", "shop/users 3.6.16"},
		},
		"a name that cannot be read holds what stood in the file": {
			"orders.yaml", desiredtest.BrokenFile, []string{"shop/carts 3.6.16", "shop/orders held", "shop/users 3.6.16"},
		},
		"nothing can be read": {"both.yaml", desiredtest.BrokenFile, []string{"shop/carts held", "shop/orders 3.6.16", "shop/users held"}},
		"one good document in a broken file": {
			"both.yaml", desiredtest.ClusterFile("users", "3.6.12") + "---\n" + desiredtest.BrokenFile, []string{"shop/carts held", "shop/orders 3.6.16", "shop/users 3.6.12"},
		},
		"declared twice": {
			"both.yaml", desiredtest.ClusterFile("orders", "3.6.12"), []string{"shop/orders held"},
		},
		"a file that is refused, whose names are not in the usual form": {
			"both.yaml", "# quorate.dev\n" + strings.Repeat("# too large\n", 100_000), []string{"shop/carts held", "shop/orders 3.6.16", "shop/users held"},
		},
		"a cluster that left":    {"both.yaml", desiredtest.ClusterFile("users", "3.6.16"), []string{"shop/orders 3.6.16", "shop/users 3.6.16"}},
		"a bad file that is new": {"new.yaml", desiredtest.BrokenFile, []string{"shop/carts 3.6.16", "shop/orders 3.6.16", "shop/users 3.6.16"}},
		"another group's kind":   {"new.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: orders}\n", []string{"shop/carts 3.6.16", "shop/orders 3.6.16", "shop/users 3.6.16"}},
		"an unknown kind of ours": {
			"new.yaml", "apiVersion: quorate.dev/v1alpha1\nkind: EtcdClutser\nmetadata: {name: orders, namespace: shop}\n",
			[]string{"shop/carts 3.6.16", "shop/orders 3.6.16", "shop/users 3.6.16"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := desired.Origins(desiredtest.Parse(good), nil)
			files := maps.Clone(good)
			files[test.file] = test.content
			got := desired.Clusters(desiredtest.Parse(files), "0a1b2c3", before)
			if list := desiredtest.Summary(got); !slices.Equal(list, test.want) {
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
	good := map[string]string{"orders.yaml": desiredtest.ClusterFile("orders", "3.6.16")}
	broken := map[string]string{"orders.yaml": desiredtest.BrokenFile}
	seen := desired.Origins(desiredtest.Parse(good), nil)
	for range 3 {
		if list := desiredtest.Summary(desired.Clusters(desiredtest.Parse(broken), "c", seen)); !slices.Equal(list, []string{"shop/orders held"}) {
			t.Errorf("clusters %q", list)
		}
		seen = desired.Origins(desiredtest.Parse(broken), seen)
	}
	moved := map[string]string{"elsewhere.yaml": desiredtest.ClusterFile("orders", "3.6.16")}
	seen = desired.Origins(desiredtest.Parse(moved), seen)
	if o := seen["shop/orders"]; len(seen) != 1 || o.File != "elsewhere.yaml" {
		t.Errorf("origins %v", seen)
	}
	if seen = desired.Origins(desiredtest.Parse(nil), seen); len(seen) != 0 {
		t.Errorf("origins of nothing: %v", seen)
	}
}

func TestHeldClusterAlwaysHasAProblem(t *testing.T) {
	hold := func(problems []schema.Problem) desired.Cluster {
		held := schema.Held{Kind: schema.KindCluster, Namespace: "shop", Name: "orders", Problems: problems}
		return desired.Clusters(schema.Set{Held: []schema.Held{held}}, "c", nil)[0]
	}
	c := hold(nil)
	if c.Key() != "shop/orders" || len(c.Problems) != 1 || c.Problems[0] == "" {
		t.Errorf("%+v", c)
	}
	c = hold([]schema.Problem{{File: "orders.yaml", Line: 5, Field: "spec.version", Message: "no"}})
	if !slices.Equal(c.Problems, []string{"orders.yaml:5: spec.version: no"}) {
		t.Errorf("problems %q", c.Problems)
	}
}
