package schema

import (
	"strings"
	"testing"
	"unicode/utf16"
)

// YAML's traps, named as such, and the other ways in which people slip: every
// message tells what to write instead.
func TestTraps(t *testing.T) {
	good := clusterText("orders")
	schedule := scheduleText("nightly", "orders", "")
	for _, c := range []struct{ name, text, want string }{
		{"4 number that loses its end", strings.Replace(good, `"3.6.16"`, "3.10", 1), "a.yaml:5:3: spec.version: YAML reads 3.10 as the number 3.1: put it in quotes"},
		{"4 nothing", strings.Replace(good, `"3.6.16"`, "", 1), "a.yaml:5:3: spec.version: is missing: write an etcd release"},
		{"4 null", strings.Replace(good, `"3.6.16"`, "~", 1), "a.yaml:5:3: spec.version: is missing: write an etcd release"},
		{"14 off", good + "  tls: {mode: off}\n", `a.yaml:8:9: spec.tls.mode: "off" is not one of Managed, Secrets, Disabled`},
		{"14 switch", good + "  etcd: {options: {pre-vote: true}}\n", "spec.etcd.options.pre-vote: must be a string, not the boolean true: put it in quotes"},
		{"14 text for a switch", schedule + "  suspend: \"true\"\n", "spec.suspend: must be true or false, not the string \"true\": leave out the quotes"},
		{"14 yes for a switch", schedule + "  suspend: yes\n", "a.yaml:8:3: spec.suspend: must be true or false, not the string \"yes\": write true"},
		{"14 off for a switch", schedule + "  suspend: Off\n", "spec.suspend: must be true or false, not the string \"Off\": write false"},
		{"14 switch for a label", strings.Replace(good, "namespace: shop", "labels: {enabled: true}", 1), "a.yaml:3:35: metadata.labels.enabled: must be a string, not the boolean true: put it in quotes"},
		{"14 number for a flag", good + "  etcd: {options: {heartbeat-interval: 100}}\n", "a.yaml:8:20: spec.etcd.options.heartbeat-interval: must be a string, not the number 100: put it in quotes"},
		{"4 short number", strings.Replace(good, `"3.6.16"`, "3.6", 1), "a.yaml:5:3: spec.version: must be a string, not the number 3.6: put it in quotes"},
		{"14 nothing for a name", strings.Replace(good, "{name: orders, namespace: shop}", "", 1), "a.yaml:3:1: metadata.name: is missing"},
		{"14 text behind the marker", "--- " + good, "a.yaml:1:1: the line between documents must have only its dashes: begin a new line after ---"},
		{"14 four dashes", good + "----\n" + good, "a.yaml:8:1: the line between documents has three dashes: write ---"},
		{"14 colon behind the value", strings.Replace(good, "replicas: 3", "replicas: 3:", 1), "a.yaml:6:3: a colon follows the value: write replicas: 3"},
		{"14 colon behind the quotes", strings.Replace(good, `"3.6.16"`, `"3.6.16":`, 1), `a.yaml:5:3: a colon follows the value: write version: "3.6.16"`},
		{"14 two colons", strings.Replace(good, "spec:", "spec::", 1), "a.yaml:4:1: [spec:]: is not a known field, did you mean spec?"},
		{"14 no colon", strings.Replace(good, "replicas: 3", "replicas 3", 1), "a.yaml:6:3: a colon is missing: write replicas: 3"},
		{"14 no colon behind spec", strings.Replace(good, "spec:", "spec", 1), "a.yaml:4:1: a colon is missing: write spec:"},
		{"14 equals sign", strings.Replace(good, "replicas: 3", "replicas = 3", 1), "a.yaml:6:3: a colon is missing: write replicas: 3"},
		{"14 too deep", strings.Replace(good, "  replicas", "   replicas", 1), "a.yaml:6:4: the line begins at column 4, deeper than the line above, which has a value and so no fields of its own: align the two"},
		{"14 not deep enough", strings.Replace(good, "  replicas", " replicas", 1), "a.yaml:6:2: the line begins at column 2, where no line above it does"},
		{"14 quote not closed", strings.Replace(good, `"3.6.16"`, `"3.6.16`, 1), "a.yaml:5:3: a quote is opened and not closed in this line"},
		{"14 brace not closed", strings.Replace(good, "{size: 8Gi}", "{size: 8Gi", 1) + "  mode: Enforce\n", "a.yaml:7:3: a brace or bracket is opened and not closed in this line"},
		{"14 no-break space", strings.Replace(good, "  replicas", "\u00a0 replicas", 1), "a space is a no-break space"},
		{"14 template in an object", good + "  backup: {destination: {objectURLTemplate: s3://b/{{ .UID }}.db}}\n", "a.yaml:8:3: a template has braces, which YAML reads as an object: put the value in quotes"},
		{"14 alias of nothing", good + "  podTemplate: *base\n", "a.yaml:8:3: *base is an alias in YAML, and there is no anchor &base in this document"},
		{"14 value with a colon", strings.Replace(good, "replicas: 3", "replicas: three: 3", 1), "a.yaml:6:3: a value with a colon and a space is an object in YAML: put it in quotes"},
		{"13 field of another place", strings.Replace(good, "{size: 8Gi}", "{size: 8Gi, quotaBackendBytes: 1Gi}", 1), "a.yaml:7:24: spec.storage.quotaBackendBytes: is not a known field here: move it below spec.etcd, and indent it"},
		{"13 field of a cluster in a restore", restoreText("again", "source: {objectURL: s3://b/x}", `version: "3.6.16"`), "a.yaml:6:3: spec.version: is not a known field here: move it below spec.clusterTemplate, and indent it"},
		{"13 field of an improbable cluster", strings.Replace(good, "{size: 8Gi}", "{volumeClaimTemplate: {}}", 1), "a.yaml:7:13: spec.storage.volumeClaimTemplate: is not a known field: write spec.storage.size and spec.storage.storageClassName"},
		{"13 field that Kubernetes sets", strings.Replace(good, "namespace: shop", "uid: x", 1), "metadata.uid: is not a known field: Kubernetes sets it, leave it out"},
		{"14 octal number", good + "  etcd: {options: {snapshot-count: 0600}}\n", "YAML reads 0600 as the number 384: put it in quotes"},
		{"14 exponent", good + "  etcd: {options: {snapshot-count: 1e3}}\n", "YAML reads 1e3 as the number 1000: put it in quotes"},
		{"14 clock time for a duration", good + "  upgrade: {soak: 12:30:00}\n", `must be a duration such as "10s", not the string "12:30:00"`},
		{"14 number as a name", strings.Replace(good, "orders", "123", 1), "metadata.name: must be a string, not the number 123: put it in quotes"},
		{"14 template in a line", good + "  backup: {destination: {objectURLTemplate: {{ .UID }}}}\n", "if this is a template such as {{ .UID }}, put it in quotes"},
		{"14 template at the end", good + "  backup:\n    destination:\n      objectURLTemplate: {{ .UID }}.db\n", "a.yaml:10:7: a template begins with a brace, which YAML reads as an object: put it in quotes"},
		{"14 name of a schedule", strings.Replace(schedule, `"0 2 * * *"`, "@daily", 1), "a.yaml:5:3: a value must not begin with @ in YAML: put it in quotes"},
		{"14 star", strings.Replace(schedule, `"0 2 * * *"`, "*/5 * * * *", 1), `a.yaml:5:3: a value that begins with * is an alias in YAML: put it in quotes, as in "*/5 * * * *"`},
		{"14 stars", strings.Replace(schedule, `"0 2 * * *"`, "* * * * *", 1), `a.yaml:5:3: a value that begins with * is an alias in YAML`},
		{"14 percent", good + "  mode: %x\n", "a.yaml:8:3: a value must not begin with % in YAML: put it in quotes"},
		{"14 backtick", good + "  mode: `x`\n", "a.yaml:8:3: a value must not begin with ` in YAML: put it in quotes"},
		{"14 no space after the colon", strings.Replace(good, "version: ", "version:", 1), `a.yaml:5:3: a space is missing after the colon: write version: "3.6.16"`},
		{"14 tab", strings.Replace(good, "  replicas", "\treplicas", 1), "a.yaml:6:1: the indentation contains a tab, which YAML does not allow: use spaces"},
		{"14 second object without a marker", "{apiVersion: quorate.dev/v1alpha1, kind: EtcdCluster}\n{kind: EtcdCluster}\n", "a.yaml:1:1: there is more after the end of this document: write --- on a separate line between two documents"},
		{"14 UTF-16", utf16Text(good), "a.yaml: the file is UTF-16 text: save it as UTF-8"},
		{"13 spec at the root", strings.ReplaceAll(strings.Replace(good, "spec:\n", "", 1), "  ", ""), "a.yaml:4:1: version: is not a known field here: move it below spec, and indent it"},
		{"13 name at the root", strings.Replace(good, "metadata: {name: orders, namespace: shop}", "metadata:\nname: orders", 1), "a.yaml:4:1: name: is not a known field here: move it below metadata, and indent it"},
		{"13 field of coreos/etcd-operator", strings.Replace(good, "replicas:", "size:", 1), "a.yaml:6:3: spec.size: is not a known field: the number of members is spec.replicas"},
		{"13 field of a pod", good + "  resources: {}\n", "a.yaml:8:3: spec.resources: is not a known field here: move it below spec.etcd, and indent it"},
		{"13 manifest of coreos/etcd-operator", "apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster\n", "a.yaml:1:1: warning: apiVersion: 1 document of etcd.database.coreos.com: it is left alone, and `quorate convert` makes quorate files of manifests"},
		{"13 manifest of etcd-cluster-operator", "apiVersion: etcd.improbable.io/v1alpha1\nkind: EtcdPeer\n---\napiVersion: etcd.improbable.io/v1alpha1\nkind: EtcdCluster\n", "a.yaml:1:1: warning: apiVersion: 2 documents of etcd.improbable.io: they are left alone, the first is this one"},
		{"15 secret in the file", good + "  backup: {destination: {secretAccessKey: hunter2}}\n", "if it is a secret, it must not be in Git"},
		{"bad time", restoreText("again", "source: {schedule: nightly, before: yesterday}"), `spec.source.before: must be a time such as "2026-11-20T08:00:00Z", not the string "yesterday"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := lines(one(c.text).Problems)
			if !strings.Contains(got, c.want) || strings.Contains(got, "hunter2") {
				t.Errorf("got:\n%s\nwant %q", got, c.want)
			}
		})
	}
}

// The field that an unknown one is mistaken for is not reported missing, in a restore too.
func TestRenamedFieldIsSaidOnce(t *testing.T) {
	for _, text := range []string{
		strings.Replace(clusterText("orders"), "replicas:", "size:", 1),
		strings.Replace(restoreText("again", "source: {objectURL: s3://b/x}"), "replicas:", "size:", 1),
		strings.Replace(clusterText("orders"), "{size: 8Gi}", "{volumeClaimTemplate: {}}", 1),
	} {
		if got := one(text).Problems; len(got) != 1 {
			t.Errorf("got %d problems and want one:\n%s", len(got), lines(got))
		}
	}
}

// A field in the wrong place is not reported missing as well.
func TestMisplacedFieldIsSaidOnce(t *testing.T) {
	text := strings.ReplaceAll(strings.Replace(clusterText("orders"), "spec:\n", "", 1), "  ", "")
	if got := one(text).Problems; len(got) != 3 {
		t.Errorf("got %d problems, want one for each of version, replicas, storage:\n%s", len(got), lines(got))
	}
}

// utf16Text is a text as some editors of Windows save it.
func utf16Text(text string) string {
	data := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		data = append(data, byte(unit), byte(unit>>8))
	}
	return string(data)
}
