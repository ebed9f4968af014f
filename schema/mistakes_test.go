package schema

import (
	"strings"
	"testing"
)

// What people do wrong most, each with all that is said of it. The messages are
// asserted to the letter: each must tell the fix to a reader who has only the message.
func TestTypicalMistakes(t *testing.T) {
	cluster, schedule := clusterText("orders"), scheduleText("nightly", "orders", "s3://b/{{ .Name }}/{{ .UID }}")
	for _, c := range []struct {
		name  string
		texts []string
		want  []string
	}{
		{
			"4 version without quotes",
			[]string{strings.Replace(cluster, `"3.6.16"`, "3.10", 1)},
			[]string{"a.yaml:5:3: spec.version: YAML reads 3.10 as the number 3.1: put it in quotes"},
		},
		{
			"4 version with a v",
			[]string{strings.Replace(cluster, "3.6.16", "v3.6.16", 1)},
			[]string{`a.yaml:5:3: spec.version: "v3.6.16" is not an etcd release: leave out the v: "3.6.16"`},
		},
		{
			"13 slip in a field",
			[]string{strings.Replace(cluster, "replicas", "replcias", 1)},
			[]string{"a.yaml:6:3: spec.replcias: is not a known field, did you mean replicas?"},
		},
		{
			"2 replicas left out",
			[]string{strings.Replace(cluster, "  replicas: 3\n", "", 1)},
			[]string{"a.yaml:4:1: spec.replicas: must be 1 to 7: a cluster without members has no data"},
		},
		{
			"13 size in place of replicas",
			[]string{strings.Replace(cluster, "replicas", "size", 1)},
			[]string{"a.yaml:6:3: spec.size: is not a known field: the number of members is spec.replicas"},
		},
		{
			"14 tab",
			[]string{strings.Replace(cluster, "  replicas", "\treplicas", 1)},
			[]string{"a.yaml:6:1: the indentation contains a tab, which YAML does not allow: use spaces"},
		},
		{
			"23 file copied and not renamed",
			[]string{cluster, cluster},
			[]string{
				"a.yaml:3:12: metadata.name: EtcdCluster shop/orders is declared again at b.yaml:1: keep one of them, until then none is reconciled",
				"b.yaml:3:12: metadata.name: EtcdCluster shop/orders is declared again at a.yaml:1: keep one of them, until then none is reconciled",
			},
		},
		{
			"13 apiVersion from memory",
			[]string{strings.Replace(cluster, "v1alpha1", "v1", 1)},
			[]string{`a.yaml:1:1: apiVersion: "quorate.dev/v1" is unknown to this version of quorate: write quorate.dev/v1alpha1`},
		},
		{
			"8 flag with its dashes",
			[]string{cluster + "  etcd: {options: {\"--heartbeat-interval\": \"100\"}}\n"},
			[]string{`a.yaml:8:20: spec.etcd.options.--heartbeat-interval: leave out the dashes: "heartbeat-interval"`},
		},
		{
			"14 schedule without quotes",
			[]string{cluster, strings.Replace(schedule, `"0 2 * * *"`, "*/30 * * * *", 1)},
			[]string{`b.yaml:5:3: a value that begins with * is an alias in YAML: put it in quotes, as in "*/5 * * * *"`},
		},
		{
			"schedule of a cluster with a slip",
			[]string{cluster, strings.Replace(schedule, "orders", "order", 1)},
			[]string{"b.yaml:7:14: spec.backupTemplate.source.clusterName: there is no EtcdCluster shop/order in Git, did you mean orders?"},
		},
		{
			"quota larger than the volume",
			[]string{cluster + "  etcd: {quotaBackendBytes: 16Gi}\n"},
			[]string{"a.yaml:8:10: spec.etcd.quotaBackendBytes: is 16Gi, more than the volume of 8Gi: the disk would be full before etcd stops writes, so write a smaller one or more storage.size"},
		},
		{
			"15 key in the file",
			[]string{cluster + "  backup: {destination: {secretKey: hunter2}}\n"},
			[]string{"a.yaml:8:26: spec.backup.destination.secretKey: is not a known field: if it is a secret, it must not be in Git, and everyone who can read the repository can use it; name a Kubernetes Secret with credentials.secretName"},
		},
		{
			"13 fields at the left margin",
			[]string{strings.ReplaceAll(strings.Replace(cluster, "spec:\n", "", 1), "  ", "")},
			[]string{
				"a.yaml:4:1: version: is not a known field here: move it below spec, and indent it",
				"a.yaml:5:1: replicas: is not a known field here: move it below spec, and indent it",
				"a.yaml:6:1: storage: is not a known field here: move it below spec, and indent it",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, want := lines(parseTexts(c.texts...).Problems), strings.Join(c.want, "\n")+"\n"; got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}
