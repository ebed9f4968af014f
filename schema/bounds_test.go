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

// 577: quorate asks no other host than those that it was told, whatever a file says, and however
// it writes them.
func TestChecksOfOtherHostsAreHeld(t *testing.T) {
	document := func(more string) []schema.File {
		return []schema.File{{Path: "a.yaml", Data: []byte(declares("payments", "ledger", more))}}
	}
	check := func(u string) string { return "  upgrade: {checks: [{name: a, http: {url: \"" + u + "\"}}]}\n" }
	hosts := []string{"orders.example.com:443", "prometheus.monitoring.svc:9090", "[2001:db8::1]:80"}
	for u, want := range map[string]string{
		"https://orders.example.com/healthz":          "",
		"https://orders.example.com:443/healthz":      "",
		"https://Orders.Example.com./healthz":         "",
		"http://prometheus.monitoring.svc:9090/":      "",
		"http://[2001:DB8:0:0::1]/":                   "",
		"http://orders.example.com/healthz":           "quorate may not ask orders.example.com:80",
		"https://orders.example.com:8443/healthz":     "quorate may not ask orders.example.com:8443",
		"https://orders.example.com.evil.test/":       "quorate may not ask orders.example.com.evil.test:443",
		"https://evil.test/orders.example.com:443":    "quorate may not ask evil.test:443",
		"http://169.254.169.254/latest/meta-data/iam": "quorate may not ask 169.254.169.254:80: --check-hosts names orders.example.com:443, prometheus.monitoring.svc:9090, [2001:db8::1]:80; ask the platform team",
	} {
		parser := schema.Parser{Bounds: schema.Bounds{CheckHosts: hosts}}
		set := parser.Parse(document(check(u)))
		told := fmt.Sprint(set.Problems)
		if held := len(set.Held) == 1 && len(set.Clusters) == 0; held != (want != "") || !strings.Contains(told, want) {
			t.Errorf("%s: held %t, %s", u, held, told)
		}
		if want != "" && (len(set.Problems) != 1 || set.Problems[0].ID != schema.IDCheckHost || set.Problems[0].Field != "spec.upgrade.checks[0].http.url") {
			t.Errorf("%s: %+v", u, set.Problems)
		}
	}
	query := "  upgrade: {checks: [{name: a, prometheus: {url: \"http://orders.example.com\", query: up}}]}\n"
	for name, c := range map[string]struct {
		hosts []string
		more  string
		want  string
	}{
		"none are allowed":                {[]string{}, check("https://orders.example.com/"), "--check-hosts names none"},
		"it is unknown which are allowed": {nil, check("https://orders.example.com/"), ""},
		"a query":                         {hosts, query, "spec.upgrade.checks[0].prometheus.url: quorate may not ask orders.example.com:80"},
		"no check needs a host":           {[]string{}, "", ""},
		"603: nor does that of a CronJob": {[]string{}, "  upgrade: {checks: [{name: a, cronJob: {name: smoke-test}}]}\n", ""},
	} {
		parser := schema.Parser{Bounds: schema.Bounds{CheckHosts: c.hosts}}
		if set := parser.Parse(document(c.more)); (len(set.Held) == 1) != (c.want != "") || !strings.Contains(fmt.Sprint(set.Problems), c.want) {
			t.Errorf("%s: %v", name, set.Problems)
		}
	}
	restore := `apiVersion: quorate.dev/v1alpha1
kind: EtcdRestore
metadata: {name: again, namespace: payments}
spec:
  source: {objectURL: "s3://backups/a.db"}
  clusterName: ledger
  clusterTemplate:
    version: "3.6.16"
    replicas: 3
    storage: {size: 8Gi}
    upgrade: {checks: [{name: a, http: {url: "http://evil.test"}}]}
`
	parser := schema.Parser{Bounds: schema.Bounds{CheckHosts: hosts}}
	if set := parser.Parse([]schema.File{{Path: "a.yaml", Data: []byte(restore)}}); !strings.Contains(fmt.Sprint(set.Problems), "spec.clusterTemplate.upgrade.checks[0].http.url: quorate may not ask evil.test:80") {
		t.Errorf("a restore: %v", set.Problems)
	}
}

// 577: a policy says which checks the files of a team may have.
func TestAPolicySaysWhatChecksMayAsk(t *testing.T) {
	judged := func(values, check string) string {
		policy, err := schema.ParsePolicy("policy.yaml", []byte("apiVersion: quorate.dev/v1alpha1\nkind: Policy\nrules:\n- {name: shop, files: [\"*\"], namespaces: [\"*\"], values: "+values+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		parser := schema.Parser{Bounds: schema.Bounds{Policy: policy}}
		return fmt.Sprint(parser.Parse([]schema.File{{Path: "a.yaml", Data: []byte(declares("shop", "ledger", "  upgrade: {checks: ["+check+"]}\n"))}}).Problems)
	}
	const (
		urls  = `{spec.upgrade.checks.http.url: ["https://shop.example.com/*"], spec.upgrade.checks.prometheus.url: ["http://prometheus.shop.svc:9090"]}`
		none  = `{spec.upgrade.checks: []}`
		own   = `{name: a, http: {url: "https://shop.example.com/healthz"}}`
		other = `{name: a, http: {url: "https://payments.example.com/healthz"}}`
		sums  = `{name: a, prometheus: {url: "http://prometheus.monitoring.svc:9090", query: up}}`
	)
	for _, c := range []struct{ values, check, want string }{
		{urls, own, "[]"},
		{urls, other, `(rule shop) does not allow "https://payments.example.com/healthz"`},
		{urls, sums, `(rule shop) does not allow "http://prometheus.monitoring.svc:9090"`},
		{none, own, `(rule shop) does not allow "a": it allows none`},
	} {
		if got := judged(c.values, c.check); !strings.Contains(got, c.want) {
			t.Errorf("%s by %s: %s", c.check, c.values, got)
		}
	}
}
