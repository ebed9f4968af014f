package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/schema"
)

// 477: what is declared in a namespace that quorate does not work in is held and told, and stands
// in the way of nothing else.
func TestOtherNamespacesAreHeld(t *testing.T) {
	files := func(texts ...string) (all []schema.File) {
		for i, text := range texts {
			all = append(all, schema.File{Path: string(rune('a'+i)) + ".yaml", Data: []byte(text)})
		}
		return all
	}
	parser := schema.Parser{Bounds: schema.Bounds{Namespaces: []string{"payments", "search"}}}
	set := parser.Parse(files(declares("payments", "ledger", ""), declares("lab", "ledger", ""), declares("lab", "ledger", ""), strings.Replace(declares("x", "index", ""), "namespace: x, ", "", 1)))
	if len(set.Clusters) != 1 || set.Clusters[0].Metadata.Namespace != "payments" {
		t.Errorf("in force are %+v", set.Clusters)
	}
	told := ""
	for _, h := range set.Held {
		for _, p := range h.Problems {
			told += p.String() + "\n"
		}
	}
	if n := strings.Count(told, "quorate does not work in namespace lab: --namespaces names payments, search; add it there, and let quorate in by a RoleBinding"); n != 2 || strings.Contains(told, "declared") {
		t.Errorf("it says\n%s", told)
	}
	if !strings.Contains(told, "metadata.namespace") {
		t.Errorf("of the one without a namespace it says\n%s", told)
	}
	copied := parser.Parse(files(declares("payments", "ledger", "  tls: {clients: [{name: a, namespaces: [search, lab]}]}\n")))
	if told := fmt.Sprint(copied.Problems); len(copied.Held) != 1 || len(copied.Problems) != 1 || copied.Problems[0].ID != schema.IDNamespace ||
		!strings.Contains(told, "spec.tls.clients[0].namespaces[1]: quorate does not work in namespace lab: --namespaces names payments, search") {
		t.Errorf("of copies it says %s", told)
	}
	anywhere := schema.Parser{}
	if set := anywhere.Parse(files(declares("lab", "ledger", ""))); len(set.Clusters) != 1 {
		t.Errorf("without --namespaces: %+v", set.Held)
	}
}
