package schema

import (
	"fmt"
	"strings"
	"testing"
)

// The fields of all kinds: what is wrong with each, and what to write instead.
// want is a part of the problems, "" for none.
func TestFields(t *testing.T) {
	const key = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
	cluster := func(lines ...string) string { return clusterText("orders", lines...) }
	// A schedule and a restore on their own name nothing else in Git.
	schedule := func(lines ...string) string {
		text := strings.Replace(scheduleText("nightly", "orders", "s3://b/{{ .UID }}", lines...), "clusterName: orders", `clusterURL: "https://etcd.example.com:2379"`, 1)
		return text
	}
	cron := func(line string) string { return strings.Replace(schedule(), "0 2 * * *", line, 1) }
	restore := func(source string, lines ...string) string {
		return restoreText("again", append([]string{"source: " + source}, lines...)...)
	}
	digest := strings.Repeat("0a", 32)
	for _, c := range []struct{ name, text, want string }{
		{"digest", cluster("image: {digest: \"sha256:" + digest + "\"}"), ""},
		{"4 digest cut short", cluster("image: {digest: \"sha256:0a\"}"), "spec.image.digest: \"sha256:0a\" is not a digest: write sha256: and 64"},
		{"4 digest of another kind", cluster("image: {digest: \"md5:" + digest + "\"}"), "spec.image.digest"},
		{"4 digest in the repository", cluster("image: {repository: \"quay.io/coreos/etcd@sha256:0a\"}"), "a digest goes to spec.image.digest"},
		{"registry with a port", cluster("image: {repository: \"registry:5000/mirror/etcd\"}"), ""},

		{"144 Secrets", cluster("tls: {mode: Secrets, secrets: {server: a, peer: b, client: c}}"), ""},
		{"144 a Secret is missing", cluster("tls: {mode: Secrets, secrets: {server: a, peer: b}}"), "spec.tls.secrets.client: is missing: with mode Secrets name a Secret"},
		{"clients", cluster("tls: {clients: [{name: checkout}, {name: reports, commonName: reporting team, secretName: reports-etcd}]}"), ""},
		{"a client of members that quorate gives no certificates", cluster("tls: {mode: Disabled, clients: [{name: checkout}]}"), "warning: spec.tls.clients: get no certificate in mode Disabled, which has no authority of quorate's to sign it: keep them until a change from Managed is over"},
		{"a client twice", cluster("tls: {clients: [{name: checkout}, {name: checkout}]}"), "spec.tls.clients[1].name: \"checkout\" is listed twice"},
		{"a client without a name", cluster("tls: {clients: [{commonName: checkout}]}"), "spec.tls.clients[0].name: is missing"},
		{"a client of a bad name", cluster("tls: {clients: [{name: Checkout}]}"), "spec.tls.clients[0].name: \"Checkout\" is not a DNS label"},
		{"495 a client by the name of root", cluster("tls: {clients: [{name: root}]}"), "spec.tls.clients[0].commonName: root is quorate's own"},
		{"495 a client called root in its certificate", cluster("tls: {clients: [{name: checkout, commonName: root}]}"), "spec.tls.clients[0].commonName: root is quorate's own"},
		{"a common name that is too long", cluster("tls: {clients: [{name: checkout, commonName: " + strings.Repeat("é", 65) + "}]}"), "spec.tls.clients[0].commonName: has 65 characters: at most 64"},
		{"the longest common name", cluster("tls: {clients: [{name: checkout, commonName: " + strings.Repeat("é", 64) + "}]}"), ""},
		{"a common name with a line", cluster(`tls: {clients: [{name: checkout, commonName: "a\nb"}]}`), "spec.tls.clients[0].commonName"},
		{"a client's Secret of a bad name", cluster("tls: {clients: [{name: checkout, secretName: A_b}]}"), "spec.tls.clients[0].secretName: is not the name of a Secret"},
		{"495 a client in quorate's own Secret", cluster("tls: {clients: [{name: checkout, secretName: orders-client}]}"), "spec.tls.clients[0].secretName: \"orders-client\" is the name of one of quorate's own Secrets"},
		{"two clients in one Secret", cluster("tls: {clients: [{name: a, secretName: orders-client-b}, {name: b}]}"), "spec.tls.clients[1].secretName: \"orders-client-b\" is the Secret of \"a\" already"},
		{"498 a client in other namespaces", cluster("tls: {clients: [{name: a, namespaces: [web, web-eu]}, {name: b, namespaces: [web]}]}"), ""},
		{"498 a client in the cluster's namespace", cluster("tls: {clients: [{name: a, namespaces: [web, shop]}]}"), "spec.tls.clients[0].namespaces[1]: \"shop\" is the namespace of the cluster"},
		{"498 a client in a namespace twice", cluster("tls: {clients: [{name: a, namespaces: [web, lab, web]}]}"), "spec.tls.clients[0].namespaces[2]: \"web\" is listed twice"},
		{"498 a client in what is no namespace", cluster("tls: {clients: [{name: a, namespaces: [Web]}]}"), "spec.tls.clients[0].namespaces[0]: \"Web\" is not a namespace"},
		{"498 a client in 16 namespaces", cluster("tls: {clients: [{name: a, namespaces: [" + namespaces(16) + "]}]}"), ""},
		{"498 a client in too many namespaces", cluster("tls: {clients: [{name: a, namespaces: [" + namespaces(17) + "]}]}"), "spec.tls.clients[0].namespaces: are 17, and at most 16 are allowed"},
		{"498 a restored cluster's client in its own namespace", strings.Replace(restore("{objectURL: \"s3://b/x.db\"}"), "storage:", "tls: {clients: [{name: a, namespaces: [shop]}]}, storage:", 1), "spec.clusterTemplate.tls.clients[0].namespaces[0]: \"shop\" is the namespace of the cluster"},
		{"a restored cluster's client in quorate's own Secret", strings.Replace(restore("{objectURL: \"s3://b/x.db\"}"), "storage:", "tls: {clients: [{name: a, secretName: again-ca}]}, storage:", 1), "spec.clusterTemplate.tls.clients[0].secretName: \"again-ca\" is the name of one"},

		{"144 Secrets in another mode", cluster("tls: {secrets: {server: a}}"), "spec.tls.secrets.client: is missing beside the others: name all three until the change from mode Secrets is over"},
		{"585 Secrets that members still show", cluster("tls: {mode: Disabled, overlap: 1h, secrets: {server: a, peer: b, client: c}}"), ""},

		{"dual stack", cluster("network: {ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv6, IPv4]}"), ""},
		{"two families in a single stack", cluster("network: {ipFamilies: [IPv4, IPv6]}"), "spec.network.ipFamilies: two families need ipFamilyPolicy"},
		{"family twice", cluster("network: {ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv4, IPv4]}"), "spec.network.ipFamilies[1]: IPv4 is listed twice"},
		{"unknown family", cluster("network: {ipFamilies: [IPV4]}"), "did you mean IPv4?"},
		{"domain with a dot", cluster("network: {clusterDomain: cluster.local.}"), "write it without a dot at the end"},

		{"window", cluster("maintenance: [{schedule: \"0 2 * * 6\", duration: 3h, timeZone: Europe/Berlin}]"), ""},
		{"window without an end", cluster("maintenance: [{schedule: \"0 2 * * 6\"}]"), "spec.maintenance[0].duration: is 0s and must be 15m to 168h"},
		{"window that is too short", cluster("maintenance: [{schedule: \"0 2 * * 6\", duration: 5m}]"), "must be 15m to 168h"},
		{"11 window in no zone", cluster("maintenance: [{schedule: \"0 2 * * 6\", duration: 3h, timeZone: Berlin}]"), "spec.maintenance[0].timeZone: \"Berlin\" is not a time zone: write an IANA name"},
		{"11 window in the zone of the machine", cluster("maintenance: [{schedule: \"0 2 * * 6\", duration: 3h, timeZone: Local}]"), "is not a time zone"},
		{"too many windows", cluster("maintenance: [" + strings.Repeat("{schedule: \"0 2 * * 6\", duration: 3h},", 17) + "]"), "has 17 windows and at most 16"},

		{"state", cluster("state: Hibernated"), ""},
		{"unknown state", cluster("state: Stopped"), "spec.state: \"Stopped\" is not one of Running, Hibernated, Deleted"},
		{"deletion", cluster("state: Deleted", "deletion: {volumes: Delete, backup: Skip}"), ""},
		{"unknown policy for volumes", cluster("deletion: {volumes: Retain}"), "spec.deletion.volumes: \"Retain\" is not one of Keep, Delete"},

		{"recovery from an encrypted backup", cluster("recovery: {clusterID: c0db8ad50b63ff47, objectURL: \"s3://b/1.db\", decryption: {secretName: age}}"), ""},
		{"decryption of a member", cluster("recovery: {clusterID: c0db8ad50b63ff47, member: orders-2, decryption: {secretName: age}}"), "spec.recovery.decryption: is used with objectURL only"},
		{"166 a mismatch of a backup", cluster("recovery: {clusterID: c0db8ad50b63ff47, objectURL: \"s3://b/1.db\", acceptHashMismatch: \"" + digest + "\"}"), ""},
		{"166 a mismatch that is none", cluster("recovery: {clusterID: c0db8ad50b63ff47, objectURL: \"s3://b/1.db\", acceptHashMismatch: \"0a\"}"), "spec.recovery.acceptHashMismatch: \"0a\" is not a sha256"},
		{"166 a mismatch of a member", cluster("recovery: {clusterID: c0db8ad50b63ff47, member: orders-2, acceptHashMismatch: \"" + digest + "\"}"), "spec.recovery.acceptHashMismatch: is used with objectURL only"},
		{"an unsigned backup", cluster("recovery: {clusterID: c0db8ad50b63ff47, objectURL: \"s3://b/1.db\", acceptUnsigned: \"" + digest + "\"}"), ""},
		{"an unsigned member", cluster("recovery: {clusterID: c0db8ad50b63ff47, member: orders-2, acceptUnsigned: \"" + digest + "\"}"), "spec.recovery.acceptUnsigned: is used with objectURL only"},
		{"recovery from a member", cluster("recovery: {clusterID: c0db8ad50b63ff47, member: orders-2}"), ""},
		{"recovery from a backup", cluster("recovery: {clusterID: c0db8ad50b63ff47, objectURL: \"s3://b/1.db\"}"), ""},
		{"recovery from nothing", cluster("recovery: {clusterID: c0db8ad50b63ff47}"), "spec.recovery: names no source: write member or objectURL"},
		{"recovery from both", cluster("recovery: {clusterID: c0db8ad50b63ff47, member: orders-0, objectURL: \"s3://b/1.db\"}"), "spec.recovery: names a member and a backup"},
		{"recovery of no cluster", cluster("recovery: {member: orders-0}"), "spec.recovery.clusterID"},
		{"recovery of no ID", cluster("recovery: {clusterID: orders, member: orders-0}"), "spec.recovery.clusterID: \"orders\" is not the ID of a cluster"},
		{"recovery from another's member", cluster("recovery: {clusterID: c1, member: basket-0}"), "spec.recovery.member: \"basket-0\" is not a member of this cluster: write one such as orders-0"},
		{"recovery from no number", cluster("recovery: {clusterID: c1, member: orders-00}"), "spec.recovery.member: \"orders-00\" is not a member"},
		{"recovery from a member that is to leave", cluster("recovery: {clusterID: c1, member: orders-3}"), "spec.recovery.member: \"orders-3\" is beyond spec.replicas, so it would be removed at once: set spec.replicas to 4 at least"},
		{"recovery from a template", cluster("recovery: {clusterID: c1, objectURL: \"s3://b/{{ .UID }}.db\"}"), "spec.recovery.objectURL: is a template"},
		{"restore with a recovery", strings.Replace(restore("{objectURL: \"s3://b/x.db\"}"), "clusterTemplate: {", "clusterTemplate: {recovery: {clusterID: c1, objectURL: \"s3://b/1.db\"}, ", 1), "spec.clusterTemplate.recovery: is for a cluster that has lost its quorum"},

		{"toleration", cluster("podTemplate: {spec: {tolerations: [{operator: Exists}]}}"), ""},
		{"toleration without a key", cluster("podTemplate: {spec: {tolerations: [{effect: NoSchedule}]}}"), "tolerations[0].key: is missing"},
		{"toleration with an unknown effect", cluster("podTemplate: {spec: {tolerations: [{operator: Exists, effect: Never}]}}"), "tolerations[0].effect"},
		{"spread without a skew", cluster("podTemplate: {spec: {topologySpreadConstraints: [{topologyKey: z, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]}}"), "maxSkew: must be 1 or more"},
		{"spread that counts nothing", cluster("podTemplate: {spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]}}"), "warning: spec.podTemplate.spec.topologySpreadConstraints[0].labelSelector"},
		{"anti-affinity without a topology", cluster("podTemplate: {spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {}}]}}}}"), "podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: is missing"},
		{"root", cluster("podTemplate: {spec: {securityContext: {runAsUser: 0}}}"), "warning: spec.podTemplate.spec.securityContext.runAsUser: is 0, root"},
		{"the old name of etcd's resources", cluster("podTemplate: {spec: {resources: {limits: {memory: 2Gi}}}}"), "warning: spec.podTemplate.spec.resources: is the old name of etcd.resources"},
		{"a warning hides no error", cluster("podTemplate: {spec: {resources: {limits: {cpu: -1}}}}"), "spec.podTemplate.spec.resources.limits.cpu: must not be negative"},
		{"both names", cluster("etcd: {resources: {limits: {memory: 4Gi}}}", "podTemplate: {spec: {resources: {limits: {memory: 2Gi}}}}"), "spec.podTemplate.spec.resources: is the old name of etcd.resources, which is there, too"},
		{"less memory than the database", cluster("etcd: {quotaBackendBytes: 4Gi, resources: {limits: {memory: 2Gi}}}"), "warning: spec.etcd.resources.limits.memory: 2Gi is less than quotaBackendBytes, 4Gi"},

		{"credentials and encryption", cluster(`backup: {destination: {objectURLTemplate: "s3://b/{{ .UID }}", credentials: {secretName: aws}, encryption: {recipients: [` + key + `]}}}`), ""},
		{"109 own store", cluster(`backup: {destination: {objectURLTemplate: "s3://b/{{ .UID }}?endpoint=https://s3.example.com&region=x", credentials: {secretName: s3}}}`), ""},
		{"15 private key", cluster(`backup: {destination: {encryption: {recipients: [AGE-SECRET-KEY-1QQQ]}}}`), "recipients[0]: is a private key: it is known to all who can read this repository"},
		{"no key", cluster(`backup: {destination: {encryption: {recipients: [me]}}}`), "recipients[0]: is not a public key of age"},

		{"backup of a URL", backupText(`source: {clusterURL: "https://etcd.example.com:2379", tls: {secretName: etcd}}`, `destination: {objectURLTemplate: "s3://b/{{ .UID }}"}`), ""},
		{"backup of nothing", backupText("source: {}"), "spec.source: names no cluster: write clusterName, or clusterURL"},
		{"backup of two", backupText(`source: {clusterName: a, clusterURL: "https://b:2379"}`, `destination: {objectURLTemplate: "s3://b/{{ .UID }}"}`), "spec.source: names two clusters"},
		{"backup of a URL to nowhere", backupText(`source: {clusterURL: "https://b:2379"}`), "spec.destination.objectURLTemplate: is missing: a source by URL"},
		{"URL without a port", backupText(`source: {clusterURL: "https://b"}`, `destination: {objectURLTemplate: "s3://b/{{ .UID }}"}`), "has no port: write https://b:2379"},
		{"URL with a path", backupText(`source: {clusterURL: "https://b:2379/x"}`, `destination: {objectURLTemplate: "s3://b/{{ .UID }}"}`), "must end with the port: write https://b:2379"},
		{"15 URL with a password", backupText(`source: {clusterURL: "https://root:hunter2@b:2379"}`, `destination: {objectURLTemplate: "s3://b/{{ .UID }}"}`), "must not hold a user or password"},
		{"no URL", backupText(`source: {clusterURL: "b:2379"}`, `destination: {objectURLTemplate: "s3://b/{{ .UID }}"}`), "is no URL of an etcd cluster: write https://host:2379"},
		{"Secret without TLS", backupText(`source: {clusterURL: "http://b:2379", tls: {secretName: etcd}}`, `destination: {objectURLTemplate: "s3://b/{{ .UID }}"}`), "spec.source.tls: is used with an https clusterURL only"},
		{"12 template without a UID", backupText(`source: {clusterURL: "https://b:2379"}`, `destination: {objectURLTemplate: "s3://b/x"}`), "the path must contain {{ .UID }}"},
		{"12 template with a function", backupText(`source: {clusterURL: "https://b:2379"}`, `destination: {objectURLTemplate: "s3://b/{{ html .UID }}"}`), "only {{ .Namespace }}, {{ .Name }}, {{ .Version }} and {{ .UID }} may be used in the template"},
		{"12 template with an unknown field", backupText(`source: {clusterURL: "https://b:2379"}`, `destination: {objectURLTemplate: "s3://b/{{ .Uid }}"}`), "may be used in the template"},

		{"11 five fields", cron("30 2 29 2 *"), ""},
		{"11 name", cron("@weekly"), ""},
		{"11 interval", cron("@every 6h"), ""},
		{"11 short interval", cron("@every 30s"), "spec.schedule: runs every 30s: at most one backup a minute"},
		{"11 every minute", cron("* * * * *"), "warning: spec.schedule: runs every 1m0s: each backup reads the whole database"},
		{"11 seconds", cron("0 0 2 * * *"), "has 6 fields: write five, without seconds"},
		{"11 too few fields", cron("0 2 *"), "has 3 fields: write five"},
		{"11 hour out of range", cron("0 24 * * *"), `spec.schedule: the hour "24" is not one of 0 to 23`},
		{"11 weekday 7", cron("0 2 * * 7"), `the weekday "7" is not one of 0 to 6 or sun to sat, where 0 is Sunday`},
		{"11 range that runs backwards", cron("0 5-3 * * *"), `the hour "5-3"`},
		{"11 never", cron("0 0 30 2 *"), "never occurs: no month has such a day"},
		{"11 reboot", cron("@reboot"), "@reboot is not a time"},
		{"11 unknown name", cron("@dayly"), "write @hourly, @daily"},
		{"11 zone in the schedule", cron("CRON_TZ=Europe/Berlin 0 2 * * *"), "write it as timeZone"},
		{"11 no schedule", cron(""), "spec.schedule: is missing: write a crontab line"},
		{"11 unknown zone", schedule("timeZone: Mars/Olympus"), "spec.timeZone: \"Mars/Olympus\" is not a time zone"},

		{"10 all are kept", schedule("retention: {keepLast: 0}"), ""},
		{"10 no retention", schedule(), ""},
		{"10 negative", schedule("retention: {keepLast: -1}"), "spec.retention.keepLast: is -1 and must not be negative: write 0 to keep all"},
		{"10 negative days", schedule("retention: {keepDaily: -1}"), "spec.retention.keepDaily: is -1 and must not be negative: leave it out"},
		{"10 too many", schedule("retention: {keepYearly: 10001}"), "must be at most 10000"},
		{"10 age", schedule("retention: {maxAge: 5m}"), "spec.retention.maxAge: is 5m0s and must be 1h or more"},
		{"grandfather, father, son", schedule("retention: {keepLast: 3, keepHourly: 24, keepDaily: 7, keepWeekly: 5, keepMonthly: 12, keepYearly: 3, maxAge: 43800h}"), ""},
		{"jitter", schedule("jitter: 25h"), "spec.jitter: is 25h0m0s and must be 0s to 24h"},
		{"deadline", schedule("startingDeadline: 10s"), "spec.startingDeadline: is 10s and must be 1m or more"},
		{"drill", schedule("verify: {restore: Hourly}"), "spec.verify.restore: \"Hourly\" is not one of Never, Always, Daily, Weekly"},

		{"restore", restore("{objectURL: \"s3://b/x.db?region=y\", credentials: {secretName: aws}, decryption: {secretName: age}}"), ""},
		{"restore of nothing", restore("{}"), "spec.source: names no backup: write objectURL, schedule or clusterName"},
		{"restore of a template", restore("{objectURL: \"s3://b/{{ .UID }}.db\"}"), "spec.source.objectURL: is a template: write the URL of one backup"},
		{"restore of a bucket", restore("{objectURL: \"s3://b\"}"), "spec.source.objectURL: name the object"},
		{"restore of one backup before a time", restore("{objectURL: s3://b/x.db, before: 2026-11-20T08:00:00Z}"), "spec.source.before: is used with schedule or clusterName only"},
		{"restore to a long name", restore("{objectURL: s3://b/x.db}", "clusterName: "+strings.Repeat("a", 41)), "spec.clusterName: has 41 characters: at most 40"},
		{"restore with a long name of its own", strings.Replace(restore("{objectURL: s3://b/x.db}"), "again", strings.Repeat("a", 41), 1), "spec.clusterName: is missing, and the name of the restore"},
		{"restore of a bad spec", strings.Replace(restore("{objectURL: s3://b/x.db}"), "3.6.16", "v3.6.16", 1), "spec.clusterTemplate.version: \"v3.6.16\" is not an etcd release"},
		{"restore to a deleted cluster", strings.Replace(restore("{objectURL: s3://b/x.db}"), "replicas: 3", "replicas: 3, state: Deleted", 1), "spec.clusterTemplate.state: is Deleted: a restore makes a running cluster"},
	} {
		t.Run(c.name, func(t *testing.T) {
			problems := one(c.text).Problems
			got := lines(problems)
			if c.want == "" && got != "" || c.want != "" && !strings.Contains(got, c.want) || strings.Contains(got, "hunter2") {
				t.Errorf("got:\n%s\nwant %q", got, c.want)
			}
		})
	}
}

// namespaces are that many, with commas between them.
func namespaces(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("web-%d", i)
	}
	return strings.Join(names, ", ")
}
