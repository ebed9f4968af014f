package schema_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/schema"
)

const (
	teamKey  = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
	policyOf = `apiVersion: quorate.dev/v1alpha1
kind: Policy
rules:
- name: payments
  files: [teams/payments/]
  namespaces: [payments, payments-*]
  stores: ["s3://payments-backups/{{ .Namespace }}/"]
  recipients: [` + teamKey + `]
  values:
    spec.image.repository: [registry.example.com/*]
    spec.podTemplate.metadata.annotations: [example.com/*]
    spec.podTemplate.spec.priorityClassName: []
    spec.podTemplate.spec.securityContext.sysctls: [net.ipv4.tcp_syncookies]
    spec.podTemplate.spec.tolerations.key: [etcd]
    spec.mode: [Observe]
  limits: {clusters: 2, members: 3, storage: 16Gi}
- name: search
  files: ["teams/search/*.yaml"]
  namespaces: [search]
  values:
    spec.tls.clients.namespaces: [shop]
`
)

func policy(t *testing.T, text string) *schema.Policy {
	t.Helper()
	p, err := schema.ParsePolicy("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// judged are the files as the policy lets them be.
func judged(t *testing.T, files map[string]string) schema.Set {
	t.Helper()
	parser := schema.Parser{Bounds: schema.Bounds{Policy: policy(t, policyOf)}}
	var all []schema.File
	for path, text := range files {
		all = append(all, schema.File{Path: path, Data: []byte(text)})
	}
	return parser.Parse(all)
}

// declares is a cluster in a namespace; more is added to its spec, two spaces deep.
func declares(namespace, name, more string) string {
	return fmt.Sprintf("apiVersion: quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {namespace: %s, name: %s}\nspec:\n  version: \"3.6.16\"\n  replicas: 3\n  storage: {size: 16Gi}\n%s", namespace, name, more)
}

// encrypted has what the rule payments wants of backups.
const encrypted = "  mode: Observe\n  backup:\n    destination:\n      objectURLTemplate: \"s3://payments-backups/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db\"\n      credentials: {secretName: keys}\n      encryption: {recipients: [" + teamKey + "]}\n"

func TestAPolicyHoldsWhatItDoesNotAllow(t *testing.T) {
	elsewhere := func(place string) string {
		return declares("payments", "ledger", strings.Replace(encrypted, "s3://payments-backups/{{ .Namespace }}/", place, 1))
	}
	ledger := declares("payments", "ledger", encrypted)
	request := "\n---\napiVersion: quorate.dev/v1alpha1\nkind: EtcdBackup\nmetadata: {namespace: payments, name: once}\nspec:\n  source: {clusterName: ledger}\n"
	restored := func(source, more string) string {
		cluster := strings.ReplaceAll("  "+strings.SplitAfter(declares("x", "x", encrypted+more), "spec:\n")[1], "\n", "\n  ")
		return "apiVersion: quorate.dev/v1alpha1\nkind: EtcdRestore\nmetadata: {namespace: payments, name: back}\nspec:\n  source: {objectURL: \"" + source + "\", credentials: {secretName: keys}}\n  clusterName: again\n  clusterTemplate:\n" + strings.TrimRight(cluster, " ")
	}
	const own = "s3://payments-backups/payments/1.db"
	for name, c := range map[string]struct{ path, text, want string }{
		"what the rule allows":                    {"teams/payments/a.yaml", ledger + request, ""},
		"a namespace that a pattern names":        {"teams/payments/a.yaml", declares("payments-eu", "ledger", encrypted), ""},
		"a rule without limits":                   {"teams/search/a.yaml", declares("search", "index", "  image: {repository: docker.io/me/etcd}\n"), ""},
		"a file that no rule is for":              {"teams/a.yaml", ledger, "policy.yaml has no rule for this file"},
		"one below the files of a pattern":        {"teams/search/deep/a.yaml", declares("search", "index", ""), "policy.yaml has no rule for this file"},
		"another namespace":                       {"teams/payments/a.yaml", declares("search", "index", encrypted), "metadata.namespace: policy.yaml:6 (rule payments) does not allow namespace search: it allows payments, payments-*"},
		"the namespace of the system":             {"teams/search/a.yaml", declares("kube-system", "index", ""), "policy.yaml:19 (rule search) does not allow namespace kube-system"},
		"another registry":                        {"teams/payments/a.yaml", ledger + "  image: {repository: docker.io/me/etcd}\n", `spec.image.repository: policy.yaml:10 (rule payments) does not allow "docker.io/me/etcd": it allows registry.example.com/*`},
		"an own registry":                         {"teams/payments/a.yaml", ledger + "  image: {repository: registry.example.com/db/etcd}\n", ""},
		"an annotation":                           {"teams/payments/a.yaml", ledger + "  podTemplate: {metadata: {annotations: {iam.example.org/role: admin}}}\n", `does not allow "iam.example.org/role"`},
		"a field that must not be set":            {"teams/payments/a.yaml", ledger + "  podTemplate: {spec: {priorityClassName: high}}\n", `spec.podTemplate.spec.priorityClassName: policy.yaml:12 (rule payments) does not allow "high": it allows none`},
		"an element by its name":                  {"teams/payments/a.yaml", ledger + "  podTemplate: {spec: {securityContext: {sysctls: [{name: net.ipv4.tcp_syncookies, value: \"1\"}, {name: kernel.msgmax, value: \"1\"}]}}}\n", `does not allow "kernel.msgmax"`},
		"a field of elements":                     {"teams/payments/a.yaml", ledger + "  podTemplate: {spec: {tolerations: [{key: control-plane, operator: Exists}]}}\n", `does not allow "control-plane"`},
		"a mode":                                  {"teams/payments/a.yaml", strings.Replace(ledger, "mode: Observe", "mode: Enforce", 1), `spec.mode: policy.yaml:15 (rule payments) does not allow "Enforce": it allows Observe`},
		"a mode by default":                       {"teams/payments/a.yaml", strings.Replace(ledger, "  mode: Observe\n", "", 1), `does not allow "Enforce"`},
		"copies where the rule allows clusters":   {"teams/payments/a.yaml", ledger + "  tls: {clients: [{name: a, namespaces: [payments-eu]}]}\n", ""},
		"498 copies elsewhere":                    {"teams/payments/a.yaml", ledger + "  tls: {clients: [{name: a, namespaces: [payments-eu]}, {name: b, namespaces: [payments-eu, search]}]}\n", "spec.tls.clients[1].namespaces[1]: policy.yaml:6 (rule payments) does not allow namespace search: it allows payments, payments-*"},
		"498 copies of a restored cluster":        {"teams/payments/a.yaml", restored(own, "  tls: {clients: [{name: a, namespaces: [search]}]}\n"), "spec.clusterTemplate.tls.clients[0].namespaces[0]: policy.yaml:6 (rule payments) does not allow namespace search"},
		"498 copies that values allow":            {"teams/search/a.yaml", declares("search", "index", "  tls: {clients: [{name: a, namespaces: [shop]}]}\n"), ""},
		"498 copies that values do not allow":     {"teams/search/a.yaml", declares("search", "index", "  tls: {clients: [{name: a, namespaces: [search-eu]}]}\n"), `spec.tls.clients.namespaces: policy.yaml:21 (rule search) does not allow "search-eu": it allows shop`},
		"too many members":                        {"teams/payments/a.yaml", strings.Replace(ledger, "replicas: 3", "replicas: 5", 1), "spec.replicas: policy.yaml:16 (rule payments) allows 3 members"},
		"too large volumes":                       {"teams/payments/a.yaml", strings.Replace(ledger, "16Gi", "17Gi", 1), "spec.storage.size: policy.yaml:16 (rule payments) allows 16Gi"},
		"backups in another place":                {"teams/payments/a.yaml", elsewhere("s3://others/{{ .Namespace }}/"), "spec.backup.destination.objectURLTemplate: policy.yaml:7 (rule payments) does not allow this place for backups: it allows s3://payments-backups/{{ .Namespace }}/"},
		"in that of another namespace":            {"teams/payments/a.yaml", elsewhere("s3://payments-backups/search/"), "does not allow this place for backups"},
		"in one that its name decides on":         {"teams/payments/a.yaml", elsewhere("s3://payments-backups/{{ .Name }}/"), "does not allow this place for backups"},
		"in a bucket that its name decides on":    {"teams/payments/a.yaml", elsewhere("s3://{{ .Name }}/"), "does not allow this place for backups"},
		"backups in the clear":                    {"teams/payments/a.yaml", declares("payments", "ledger", "  mode: Observe\n"), "spec.backup.destination.encryption.recipients: policy.yaml:8 (rule payments) wants all backups to be encrypted for " + teamKey},
		"a backup of its own in the clear":        {"teams/payments/a.yaml", ledger + request + "  destination: {objectURLTemplate: \"s3://payments-backups/payments/{{ .UID }}.db\", credentials: {secretName: keys}}\n", "spec.destination.encryption.recipients: policy.yaml:8"},
		"a recovery from another place":           {"teams/payments/a.yaml", ledger + "  recovery: {clusterID: 0a0b0c0d0e0f0a0b, objectURL: \"s3://payments-backups/search/1.db\"}\n", "spec.recovery.objectURL: policy.yaml:7"},
		"a restore":                               {"teams/payments/a.yaml", restored(own, ""), ""},
		"a restore from another place":            {"teams/payments/a.yaml", restored("s3://payments-backups/search/1.db", ""), "spec.source.objectURL: policy.yaml:7"},
		"a restore into an image of another's":    {"teams/payments/a.yaml", restored(own, "  image: {repository: docker.io/me/etcd}\n"), "spec.clusterTemplate.image.repository: policy.yaml:10"},
		"a restore with more members":             {"teams/payments/a.yaml", strings.Replace(restored(own, ""), "replicas: 3", "replicas: 5", 1), "spec.clusterTemplate.replicas: policy.yaml:16"},
		"more clusters than there may be":         {"teams/payments/a.yaml", ledger + "---\n" + declares("payments", "b", encrypted) + "---\n" + restored(own, ""), "policy.yaml:16 (rule payments) allows 2 clusters, and its files declare 3, restores included"},
		"what has errors of its own is held once": {"teams/payments/a.yaml", strings.Replace(ledger, `"3.6.16"`, "latest", 1), "spec.version: "},
	} {
		set := judged(t, map[string]string{c.path: c.text})
		var texts []string
		for _, p := range set.Problems {
			if !p.Warning {
				texts = append(texts, p.String())
			}
		}
		got := strings.Join(texts, "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
		if held := len(set.Held) > 0; held != (c.want != "") {
			t.Errorf("%s: held is %t", name, held)
		}
	}
}

// A file of one team holds nothing of another's: neither by the same name, nor by a place for
// backups, nor by a restore into it.
func TestAFileThatIsRefusedHoldsNothingOfAnother(t *testing.T) {
	index := declares("search", "index", "  backup: {destination: {objectURLTemplate: \"s3://search/{{ .UID }}.db\"}}\n")
	into := "apiVersion: quorate.dev/v1alpha1\nkind: EtcdRestore\nmetadata: {namespace: search, name: back}\nspec:\n  source: {objectURL: \"s3://search/1.db\"}\n  clusterName: index\n  clusterTemplate: {version: \"3.6.16\", replicas: 3, storage: {size: 16Gi}}\n"
	for _, attack := range []string{index, strings.ReplaceAll(index, "name: index", "name: other"), into, "apiVersion: quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {namespace: search, name: index}\nspec: {}\n"} {
		set := judged(t, map[string]string{"teams/search/a.yaml": index, "teams/payments/b.yaml": attack})
		if len(set.Clusters) != 1 || set.Clusters[0].Origin.File != "teams/search/a.yaml" {
			t.Errorf("%s\nleaves %d clusters", attack, len(set.Clusters))
		}
		for _, held := range set.Held {
			if held.Means(schema.KindCluster, "search", "index", "teams/search/a.yaml") {
				t.Errorf("%s\nholds %+v", attack, held)
			}
		}
		if !slices.ContainsFunc(set.Problems, func(p schema.Problem) bool { return p.ID == schema.IDPolicy && p.File == "teams/payments/b.yaml" }) {
			t.Errorf("%s\nis told nothing: %v", attack, set.Problems)
		}
	}
	// What only the refused file declares may be there from before, and is left as it is.
	set := judged(t, map[string]string{"teams/payments/b.yaml": index})
	if len(set.Held) != 1 || !set.Held[0].Means(schema.KindCluster, "search", "index", "") {
		t.Errorf("held: %+v", set.Held)
	}
}

func TestAPolicyThatIsMisspeltIsRefused(t *testing.T) {
	for from, c := range map[string]struct{ to, want string }{
		"kind: Policy":                            {"kind: Police", "policy.yaml:2: kind: a policy begins with"},
		"v1alpha1":                                {"v1", "a policy begins with apiVersion: quorate.dev/v1alpha1"},
		"name: payments":                          {"name: \"\"", "policy.yaml:4: rules[0].name: "},
		"files: [teams/payments/]":                {"files: []", "policy.yaml:5: rules[0].files: "},
		"teams/payments/":                         {"/teams/payments/", `rules[0].files[0]: "/teams/payments/" is not a pattern`},
		"teams/search/*.yaml":                     {"teams/[.yaml", "rules[1].files[0]: "},
		"namespaces: [search]":                    {"namespaces: []", "policy.yaml:19: rules[1].namespaces: "},
		"s3://payments-backups/{{ .Namespace }}/": {"s3://{{ .Name }}/", "policy.yaml:7: rules[0].stores[0]: it must name a bucket"},
		teamKey:                         {"age1", "policy.yaml:8: rules[0].recipients[0]: it is not a public key"},
		"spec.image.repository":         {"spec.image.registry", "policy.yaml:9: rules[0].values: spec.image.registry is no field of an EtcdCluster"},
		"spec.mode":                     {"metadata.labels", "rules[0].values: metadata.labels is no field"},
		"clusters: 2":                   {"clusters: -2", "policy.yaml:16: rules[0].limits: a limit must not be below zero"},
		"members: 3":                    {"member: 3", `unknown field "member"`},
		"rules:":                        {"rule:", `unknown field "rule"`},
		"limits: {clusters: 2, members": {"limits: {clusters: two, members", "cannot unmarshal"},
		"- name: search":                {"- name: [", "opened and not closed"},
	} {
		if _, err := schema.ParsePolicy("policy.yaml", []byte(strings.Replace(policyOf, from, c.to, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.to, err, c.want)
		}
	}
	if _, err := schema.ParsePolicy("policy.yaml", []byte("apiVersion: quorate.dev/v1alpha1\nkind: Policy\nrules: []\n")); err == nil || !strings.Contains(err.Error(), "name at least one rule") {
		t.Errorf("%v", err)
	}
}
