package jsonschema_test

import "github.com/quorate/quorate/schema"

// badDocument is a small good document with one slip: from is replaced by to, or
// to is added at the end.
type badDocument struct{ kind, name, from, to string }

// small are good documents by kind, written so that a slip can be added at the
// end of the spec.
func small() map[string]string {
	return map[string]string{
		schema.KindCluster: `apiVersion: quorate.dev/v1alpha1
kind: EtcdCluster
metadata: {name: orders, namespace: shop, labels: {a: b}, annotations: {a: b}}
spec:
  version: "3.6.16"
  replicas: 3
  storage: {size: 8Gi}
`,
		schema.KindBackup: `apiVersion: quorate.dev/v1alpha1
kind: EtcdBackup
metadata: {name: once}
spec:
  source: {clusterURL: "https://etcd.example.com:2379"}
  destination: {objectURLTemplate: "s3://b/{{ .UID }}.db"}
`,
		schema.KindBackupSchedule: `apiVersion: quorate.dev/v1alpha1
kind: EtcdBackupSchedule
metadata: {name: often}
spec:
  schedule: "0 */6 * * *"
  backupTemplate: {source: {clusterURL: "https://etcd.example.com:2379"}, destination: {objectURLTemplate: "s3://b/{{ .UID }}.db"}}
`,
		schema.KindRestore: `apiVersion: quorate.dev/v1alpha1
kind: EtcdRestore
metadata: {name: back}
spec:
  source: {objectURL: "s3://b/1.db"}
  clusterTemplate: {version: "3.6.16", replicas: 1, storage: {size: 8Gi}}
`,
	}
}

// badDocuments are slips that a schema can express.
func badDocuments() []badDocument {
	cluster, backup, often, restore := schema.KindCluster, schema.KindBackup, schema.KindBackupSchedule, schema.KindRestore
	return []badDocument{
		{cluster, "13 unknown apiVersion", "v1alpha1", "v1"},
		{cluster, "13 unknown kind", "kind: EtcdCluster", "kind: EtcdClutser"},
		{cluster, "13 kind missing", "kind: EtcdCluster\n", ""},
		{cluster, "13 unknown field", "", "  replica: 3\n"},
		{cluster, "13 field of another object", "", "status: {}\n"},
		{cluster, "13 unknown field of Kubernetes", "", "  podTemplate: {spec: {tolerations: [{operater: Exists}]}}\n"},
		{cluster, "13 uid in metadata", "namespace: shop", "uid: a"},
		{cluster, "13 text for a number", "replicas: 3", `replicas: "3"`},
		{cluster, "13 fraction", "replicas: 3", "replicas: 3.5"},
		{cluster, "13 number for a text", "", "  etcd: {options: {heartbeat-interval: 100}}\n"},
		{cluster, "13 list for an object", "", "  etcd: []\n"},
		{cluster, "auth without enabled", "", "  auth: {users: [{name: app}]}\n"},
		{cluster, "permission without keys", "", "  auth: {enabled: true, roles: [{name: a, permissions: [{access: Read}]}]}\n"},
		{cluster, "permission for a prefix and a key", "", "  auth: {enabled: true, roles: [{name: a, permissions: [{access: Read, prefix: /a, key: /b}]}]}\n"},
		{cluster, "access of a permission", "", "  auth: {enabled: true, roles: [{name: a, permissions: [{access: All, prefix: /a}]}]}\n"},
		{cluster, "name of a user", "", "  auth: {enabled: true, users: [{name: \" app\"}]}\n"},
		{cluster, "mode of defragmentation", "", "  defragmentation: {mode: Sometimes}\n"},
		{cluster, "interval for a time", "", "  defragmentation: {schedule: \"@every 1h\"}\n"},
		{cluster, "change of the class", "size: 8Gi", "size: 8Gi, storageClassName: fast, classChange: Maybe"},
		{cluster, "13 mapping for a list", "", "  maintenance: {}\n"},
		{cluster, "13 bad amount", "8Gi", "8GB"},
		{cluster, "13 negative amount", "8Gi", "-8Gi"},
		{cluster, "13 negative number as amount", "8Gi", "-8"},
		{cluster, "13 zero as amount", "8Gi", "0"},
		{cluster, "wave too high", "", "  upgrade: {wave: 100}\n"},
		{cluster, "wave below zero", "", "  upgrade: {wave: -1}\n"},
		{cluster, "check without a name", "", "  upgrade: {checks: [{http: {url: http://a}}]}\n"},
		{cluster, "check of nothing", "", "  upgrade: {checks: [{name: a}]}\n"},
		{cluster, "check of two things", "", "  upgrade: {checks: [{name: a, http: {url: http://a}, prometheus: {url: http://a, query: up}}]}\n"},
		{cluster, "check of a CronJob and another", "", "  upgrade: {checks: [{name: a, http: {url: http://a}, cronJob: {name: b}}]}\n"},
		{cluster, "check of a CronJob without a name", "", "  upgrade: {checks: [{name: a, cronJob: {}}]}\n"},
		{cluster, "check of a CronJob elsewhere", "", "  upgrade: {checks: [{name: a, cronJob: {name: b/c}}]}\n"},
		{cluster, "check of a file", "", "  upgrade: {checks: [{name: a, http: {url: \"file:///etc/passwd\"}}]}\n"},
		{cluster, "check with a password", "", "  upgrade: {checks: [{name: a, http: {url: \"http://a:b@c/\"}}]}\n"},
		{cluster, "check with a fragment", "", "  upgrade: {checks: [{name: a, http: {url: \"http://a/#b\"}}]}\n"},
		{cluster, "status of a check", "", "  upgrade: {checks: [{name: a, http: {url: http://a, status: 99}}]}\n"},
		{cluster, "check without a query", "", "  upgrade: {checks: [{name: a, prometheus: {url: http://a}}]}\n"},
		{cluster, "check of a query and another", "", "  upgrade: {checks: [{name: a, prometheus: {url: \"http://a?b\", query: up}}]}\n"},
		{cluster, "142 taken over from an incomplete owner", "", "  takeOver: \"https://git.example.com/etcd.git\"\n"},
		{cluster, "142 taken over without a number", "", "  takeOver: \"/srv/git@main#default\"\n"},
		{cluster, "13 bad duration", "", "  upgrade: {soak: 10}\n"},
		{cluster, "13 duration without unit", "", "  upgrade: {soak: \"10\"}\n"},
		{cluster, "560 no word", "", "  tls: {rotate: \"2026 12\"}\n"},
		{cluster, "560 a number for a word", "", "  tls: {rotate: 2026}\n"},
		{cluster, "13 negative duration", "", "  upgrade: {soak: -10s}\n"},
		{cluster, "3 version missing", "  version: \"3.6.16\"\n", ""},
		{cluster, "4 version as a number", `"3.6.16"`, "3.6"},
		{cluster, "4 version with v", "3.6.16", "v3.6.16"},
		{cluster, "4 moving tag", "3.6.16", "latest"},
		{cluster, "4 minor only", "3.6.16", "3.6"},
		{cluster, "4 major 2", "3.6.16", "2.3.8"},
		{cluster, "4 major 4", "3.6.16", "4.0.0"},
		{cluster, "4 pre-release", "3.6.16", "3.6.0-rc.1"},
		{cluster, "4 leading zero", "3.6.16", "3.6.01"},
		{cluster, "2 no members", "replicas: 3", "replicas: 0"},
		{cluster, "2 negative members", "replicas: 3", "replicas: -1"},
		{cluster, "2 too many members", "replicas: 3", "replicas: 8"},
		{cluster, "2 members missing", "  replicas: 3\n", ""},
		{cluster, "storage missing", "  storage: {size: 8Gi}\n", ""},
		{cluster, "size missing", "{size: 8Gi}", "{}"},
		{cluster, "9 name missing", "name: orders, ", ""},
		{cluster, "9 name in capitals", "orders", "Orders"},
		{cluster, "9 name with an underscore", "orders", "my_orders"},
		{cluster, "9 name too long", "orders", "a2345678901234567890123456789012345678901"},
		{cluster, "9 namespace with a dot", "shop", "shop.eu"},
		{cluster, "7 reserved label", "labels: {a: b}", "labels: {quorate.dev/a: b}"},
		{cluster, "7 reserved label of Kubernetes", "labels: {a: b}", "labels: {app.kubernetes.io/name: b}"},
		{cluster, "7 reserved label below", "labels: {a: b}", "labels: {x.quorate.dev/a: b}"},
		{cluster, "7 bad label value", "labels: {a: b}", `labels: {a: "b c"}`},
		{cluster, "7 bad label key", "labels: {a: b}", `labels: {"a b": b}`},
		{cluster, "7 reserved annotation", "annotations: {a: b}", "annotations: {quorate.dev/a: b}"},
		{cluster, "7 reserved annotation of a pod", "", "  podTemplate: {metadata: {annotations: {quorate.dev/a: b}}}\n"},
		{cluster, "bad key of a node selector", "", "  podTemplate: {spec: {nodeSelector: {\"a b\": c}}}\n"},
		{cluster, "negative CPU", "", "  etcd: {resources: {limits: {cpu: -1}}}\n"},
		{cluster, "unknown resource", "", "  etcd: {resources: {limits: {cpus: 1}}}\n"},
		{cluster, "resource of a volume", "", "  etcd: {resources: {requests: {storage: 1Gi}}}\n"},
		{cluster, "resource claims", "", "  etcd: {resources: {claims: [{name: a}]}}\n"},
		{cluster, "operator of a toleration", "", "  podTemplate: {spec: {tolerations: [{key: a, operator: Equals}]}}\n"},
		{cluster, "effect of a toleration", "", "  podTemplate: {spec: {tolerations: [{key: a, effect: Evict}]}}\n"},
		{cluster, "spread without a key", "", "  podTemplate: {spec: {topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}}\n"},
		{cluster, "spread without a skew", "", "  podTemplate: {spec: {topologySpreadConstraints: [{maxSkew: 0, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}}\n"},
		{cluster, "unknown answer to a spread", "", "  podTemplate: {spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: Never}]}}\n"},
		{cluster, "weight above 100", "", "  podTemplate: {spec: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, preference: {}}]}}}}\n"},
		{cluster, "operator of a node selector", "", "  podTemplate: {spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Is}]}]}}}}}\n"},
		{cluster, "operator of a label selector", "", "  podTemplate: {spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchExpressions: [{key: a, operator: Is}]}}]}}\n"},
		{cluster, "negative user", "", "  podTemplate: {spec: {securityContext: {runAsUser: -1}}}\n"},
		{cluster, "image with a scheme", "", "  image: {repository: \"https://quay.io/coreos/etcd\"}\n"},
		{cluster, "image with a tag", "", "  image: {repository: \"quay.io/coreos/etcd:v3.6.16\"}\n"},
		{cluster, "image with a digest", "", "  image: {repository: \"quay.io/coreos/etcd@sha256:00\"}\n"},
		{cluster, "image in capitals", "", "  image: {repository: quay.io/CoreOS/etcd}\n"},
		{cluster, "4 digest too short", "", "  image: {digest: \"sha256:00\"}\n"},
		{cluster, "storage class", "  storage: {size: 8Gi}", "  storage: {size: 8Gi, storageClassName: Fast}"},
		{cluster, "quota 0", "", "  etcd: {quotaBackendBytes: 0}\n"},
		{cluster, "compaction mode", "", "  etcd: {autoCompaction: {mode: Periodic, retention: 8h}}\n"},
		{cluster, "compaction retention", "", "  etcd: {autoCompaction: {retention: 8 hours}}\n"},
		{cluster, "8 option with dashes", "", "  etcd: {options: {--heartbeat-interval: \"100\"}}\n"},
		{cluster, "8 option as a variable", "", "  etcd: {options: {ETCD_HEARTBEAT_INTERVAL: \"100\"}}\n"},
		{cluster, "8 option with its value", "", "  etcd: {options: {heartbeat-interval=100: \"1\"}}\n"},
		{cluster, "8 empty option", "", "  etcd: {options: {heartbeat-interval: \"\"}}\n"},
		{cluster, "8 option of two lines", "", "  etcd: {options: {heartbeat-interval: \"1\\n2\"}}\n"},
		{cluster, "TLS mode", "", "  tls: {mode: managed}\n"},
		{cluster, "TLS secrets missing", "", "  tls: {mode: Secrets}\n"},
		{cluster, "TLS secret missing", "", "  tls: {mode: Secrets, secrets: {server: a, peer: b}}\n"},
		{cluster, "TLS secrets in another mode", "", "  tls: {secrets: {server: a, peer: b}}\n"},
		{cluster, "12 template without UID", "", "  backup: {destination: {objectURLTemplate: \"s3://b/a.db\"}}\n"},
		{cluster, "12 template with UID in the query only", "", "  backup: {destination: {objectURLTemplate: \"s3://b/a.db?x={{ .UID }}\"}}\n"},
		{cluster, "12 template of another scheme", "", "  backup: {destination: {objectURLTemplate: \"ftp://b/{{ .UID }}.db\"}}\n"},
		{cluster, "bad recipient", "", "  backup: {destination: {encryption: {recipients: [AGE-SECRET-KEY-1]}}}\n"},
		{cluster, "upgrade path", "", "  upgrade: {path: Fast}\n"},
		{cluster, "upgrade backup", "", "  upgrade: {backup: skip}\n"},
		{cluster, "cluster domain", "", "  network: {clusterDomain: Cluster_Local}\n"},
		{cluster, "IP family policy", "", "  network: {ipFamilyPolicy: Dual}\n"},
		{cluster, "IP family", "", "  network: {ipFamilies: [ipv4]}\n"},
		{cluster, "three IP families", "", "  network: {ipFamilies: [IPv4, IPv6, IPv4]}\n"},
		{cluster, "11 window without schedule", "", "  maintenance: [{duration: 3h}]\n"},
		{cluster, "11 window without duration", "", "  maintenance: [{schedule: \"0 2 * * 6\"}]\n"},
		{cluster, "11 window of six fields", "", "  maintenance: [{schedule: \"0 0 2 * * 6\", duration: 3h}]\n"},
		{cluster, "11 window with a zone in the schedule", "", "  maintenance: [{schedule: \"TZ=UTC 0 2 * * 6\", duration: 3h}]\n"},
		{cluster, "11 window with an offset as zone", "", "  maintenance: [{schedule: \"0 2 * * 6\", duration: 3h, timeZone: \"+01:00\"}]\n"},
		{cluster, "IP families without a policy", "", "  network: {ipFamilies: [IPv4, IPv6]}\n"},
		{cluster, "IP family twice", "", "  network: {ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv4, IPv4]}\n"},
		{cluster, "short recipient", "", "  backup: {destination: {encryption: {recipients: [age1abc]}}}\n"},
		{cluster, "state", "", "  state: Stopped\n"},
		{cluster, "volumes", "", "  state: Deleted\n  deletion: {volumes: Drop}\n"},
		{cluster, "mode", "", "  mode: Watch\n"},
		{backup, "no source", `{clusterURL: "https://etcd.example.com:2379"}`, "{}"},
		{backup, "two sources", "clusterURL:", "clusterName: orders, clusterURL:"},
		{backup, "TLS without URL", `{clusterURL: "https://etcd.example.com:2379"}`, "{clusterName: orders, tls: {secretName: a}}"},
		{backup, "URL without scheme", "https://etcd", "etcd"},
		{backup, "URL without port", ":2379", ""},
		{backup, "URL with a path", ":2379", ":2379/v3"},
		{backup, "15 URL with a password", "https://", "https://root:secret@"},
		{backup, "TLS with http", `{clusterURL: "https://etcd.example.com:2379"}`, `{clusterURL: "http://etcd.example.com:2379", tls: {secretName: a}}`},
		{backup, "URL without destination", "  destination: {objectURLTemplate: \"s3://b/{{ .UID }}.db\"}\n", ""},
		{backup, "unknown field", "", "  suspend: true\n"},
		{backup, "9 name in capitals", "once", "Once"},
		{often, "11 schedule missing", "  schedule: \"0 */6 * * *\"\n", ""},
		{often, "11 schedule of four fields", "0 */6 * * *", "0 */6 * *"},
		{often, "11 unknown name", "0 */6 * * *", "@often"},
		{often, "11 interval without unit", "0 */6 * * *", "@every 10"},
		{often, "11 zone in the schedule", "0 */6 * * *", "CRON_TZ=UTC 0 */6 * * *"},
		{often, "template missing", `{source: {clusterURL: "https://etcd.example.com:2379"}, destination: {objectURLTemplate: "s3://b/{{ .UID }}.db"}}`, "{}"},
		{often, "10 negative number to keep", "", "  retention: {keepLast: -1}\n"},
		{often, "10 negative days to keep", "", "  retention: {keepDaily: -1}\n"},
		{often, "10 too many to keep", "", "  retention: {keepLast: 10001}\n"},
		{often, "age in days", "", "  retention: {maxAge: 30d}\n"},
		{often, "suspend as a text", "", "  suspend: \"yes\"\n"},
		{often, "verification", "", "  verify: {restore: Sometimes}\n"},
		{often, "negative jitter", "", "  jitter: -1m\n"},
		{restore, "no source", `{objectURL: "s3://b/1.db"}`, "{}"},
		{restore, "two sources", "objectURL:", "schedule: often, objectURL:"},
		{restore, "time for one backup", `objectURL: "s3://b/1.db"`, `objectURL: "s3://b/1.db", before: "2026-11-20T08:00:00Z"`},
		{restore, "credentials for a schedule", `objectURL: "s3://b/1.db"`, `schedule: often, credentials: {secretName: a}`},
		{restore, "template for one backup", "1.db", "{{ .UID }}.db"},
		{restore, "hibernated from the start", "replicas: 1", "replicas: 1, state: Hibernated"},
		{restore, "time without zone", `objectURL: "s3://b/1.db"`, `schedule: often, before: "2026-11-20T08:00:00"`},
		{restore, "URL of another scheme", "s3://", "https://"},
		{restore, "no template", `  clusterTemplate: {version: "3.6.16", replicas: 1, storage: {size: 8Gi}}` + "\n", ""},
		{restore, "bad template", "replicas: 1", "replicas: 0"},
		{restore, "9 name of the cluster too long", "", "  clusterName: a2345678901234567890123456789012345678901\n"},
	}
}
