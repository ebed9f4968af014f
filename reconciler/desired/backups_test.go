package desired_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/desired/desiredtest"
)

// I10: the backup that a restore names is not removed, and none at all is while a
// document that may be a restore has errors.
func TestNeeded(t *testing.T) {
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
		"a cluster with errors":      {desiredtest.ClusterFile("orders", "latest"), "", 0},
	} {
		needed, doubt := desired.Needed(desiredtest.Parse(map[string]string{"a.yaml": c.text}))
		if len(needed) != c.needed || doubt != c.doubt || c.needed > 0 && needed[url] != "EtcdRestore shop/copy" {
			t.Errorf("%s: %q, doubt %q", name, needed, doubt)
		}
	}
}
