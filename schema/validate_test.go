package schema

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// valid is a cluster against which nothing can be said.
func valid() *EtcdCluster {
	c := &EtcdCluster{
		Metadata: Metadata{Name: "orders"},
		Spec:     ClusterSpec{Version: "3.6.16", Replicas: 3, Storage: StorageSpec{Size: resource.MustParse("8Gi")}},
	}
	Default(c)
	return c
}

// amount is a pointer to a quantity.
func amount(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

func TestValidate(t *testing.T) {
	long := strings.Repeat("a", 41)
	option := func(name, value string) func(*EtcdCluster) {
		return func(c *EtcdCluster) { c.Spec.Etcd.Options = map[string]string{name: value} }
	}
	replicas := func(n int32) func(*EtcdCluster) { return func(c *EtcdCluster) { c.Spec.Replicas = n } }
	version := func(v string) func(*EtcdCluster) { return func(c *EtcdCluster) { c.Spec.Version = v } }
	repository := func(r string) func(*EtcdCluster) {
		return func(c *EtcdCluster) { c.Spec.Image.Repository = r }
	}
	name := func(n string) func(*EtcdCluster) { return func(c *EtcdCluster) { c.Metadata.Name = n } }
	quota := func(q string) func(*EtcdCluster) {
		return func(c *EtcdCluster) { c.Spec.Etcd.QuotaBackendBytes = amount(q) }
	}
	size := func(q string) func(*EtcdCluster) {
		return func(c *EtcdCluster) { c.Spec.Storage.Size = resource.MustParse(q) }
	}
	compaction := func(mode, retention string) func(*EtcdCluster) {
		return func(c *EtcdCluster) { c.Spec.Etcd.AutoCompaction = AutoCompaction{mode, retention} }
	}
	soak := func(d time.Duration) func(*EtcdCluster) {
		return func(c *EtcdCluster) { c.Spec.Upgrade.Soak = &metav1.Duration{Duration: d} }
	}
	rotate := func(word string, certificate, authority, overlap time.Duration) func(*EtcdCluster) {
		return func(c *EtcdCluster) {
			c.Spec.TLS = TLSSpec{Mode: TLSManaged, Rotate: word}
			if certificate > 0 {
				c.Spec.TLS.Lifetimes.Certificate = &metav1.Duration{Duration: certificate}
			}
			if authority > 0 {
				c.Spec.TLS.Lifetimes.Authority = &metav1.Duration{Duration: authority}
			}
			if overlap >= 0 {
				c.Spec.TLS.Overlap = &metav1.Duration{Duration: overlap}
			}
		}
	}
	ignore := func(d IgnoredDrift) func(*EtcdCluster) {
		return func(c *EtcdCluster) { c.Spec.Drift.Ignore = []IgnoredDrift{d} }
	}
	surge := func(replicas, n int32) func(*EtcdCluster) {
		return func(c *EtcdCluster) { c.Spec.Replicas, c.Spec.Upgrade.MaxSurge = replicas, n }
	}
	wave := func(n int32) func(*EtcdCluster) { return func(c *EtcdCluster) { c.Spec.Upgrade.Wave = n } }
	checks := func(all ...UpgradeCheck) func(*EtcdCluster) {
		return func(c *EtcdCluster) { c.Spec.Upgrade.Checks = all }
	}
	asks := func(u string) UpgradeCheck { return UpgradeCheck{Name: "a", HTTP: &HTTPCheck{URL: u}} }
	queries := func(u, query string) UpgradeCheck {
		return UpgradeCheck{Name: "a", Prometheus: &PrometheusCheck{URL: u, Query: query}}
	}
	lasting := func(timeout, stable time.Duration) UpgradeCheck {
		c := asks("http://a")
		c.Timeout, c.For = &metav1.Duration{Duration: timeout}, &metav1.Duration{Duration: stable}
		return c
	}
	answers := func(status int32) UpgradeCheck {
		c := asks("http://a")
		c.HTTP.Status = status
		return c
	}
	runs := func(name string) UpgradeCheck { return UpgradeCheck{Name: "a", CronJob: &CronJobCheck{Name: name}} }
	const badURL = "spec.upgrade.checks[0].http.url: is not a URL that can be asked"
	takeOver := func(owner string) func(*EtcdCluster) { return func(c *EtcdCluster) { c.Spec.TakeOver = owner } }
	template := func(u string) func(*EtcdCluster) {
		return func(c *EtcdCluster) { c.Spec.Backup.Destination.ObjectURLTemplate = u }
	}
	for _, c := range []struct {
		name   string
		change func(*EtcdCluster)
		want   string // "" for nothing at all
	}{
		{"1 one member", replicas(1), ""},
		{"241 drift", func(c *EtcdCluster) { c.Spec.Drift.Mode = DriftDetect }, ""},
		{"241 another mode of drift", func(c *EtcdCluster) { c.Spec.Drift.Mode = "Detct" }, "spec.drift.mode: \"Detct\" is not one of Correct, Detect"},
		{"242 a field is ignored", ignore(IgnoredDrift{Kind: "Service", Path: "/spec/externalTrafficPolicy", Reason: "the load balancer team sets it"}), ""},
		{"242 of what quorate relies on", ignore(IgnoredDrift{Kind: "StatefulSet", Path: "/spec/replicas", Reason: "x"}), "spec.drift.ignore[0].kind: is \"StatefulSet\" and must be Service"},
		{"242 that quorate sets", ignore(IgnoredDrift{Kind: "Service", Path: "/spec/selector/app", Reason: "x"}), "spec.drift.ignore[0].path: is \"/spec/selector/app\", by which clients find the members"},
		{"242 without a reason", ignore(IgnoredDrift{Kind: "Service", Path: "/spec/sessionAffinity", Reason: " "}), "spec.drift.ignore[0].reason: is missing"},
		{"242 the whole spec", ignore(IgnoredDrift{Kind: "Service", Path: "/spec", Reason: "x"}), "must be a JSON pointer to a field of the spec"},
		{"242 outside of the spec", ignore(IgnoredDrift{Kind: "Service", Path: "/metadata/labels", Reason: "x"}), "must be a JSON pointer to a field of the spec"},
		{"242 no pointer", ignore(IgnoredDrift{Kind: "Service", Path: "spec.sessionAffinity", Reason: "x"}), "must be a JSON pointer"},
		{"242 a bad escape", ignore(IgnoredDrift{Kind: "Service", Path: "/spec/a~2b", Reason: "x"}), "must be a JSON pointer"},
		{"242 too many", func(c *EtcdCluster) { c.Spec.Drift.Ignore = make([]IgnoredDrift, 17) }, "spec.drift.ignore: has 17 fields and may have 16"},
		{"1 three members", replicas(3), ""},
		{"1 five members", replicas(5), ""},
		{"1 seven members", replicas(7), ""},
		{"quota that leaves little room on the volume", quota("7Gi"), "spec.etcd.quotaBackendBytes"},
		{"quota with room for the log and a copy", func(c *EtcdCluster) { size("9Gi")(c); quota("4Gi")(c) }, ""},
		{"quota without", quota("4Gi"), "warning: spec.etcd.quotaBackendBytes: a quota of 4Gi wants a volume of 8704Mi, and storage.size is 8Gi"},
		{"2 no members", replicas(0), "spec.replicas: must be 1 to 7"},
		{"2 negative", replicas(-1), "spec.replicas: is -1"},
		{"2 two members", replicas(2), "warning: spec.replicas: 2 is even"},
		{"2 eight members", replicas(8), "spec.replicas: is 8"},
		{"3 version missing", version(""), "spec.version: is missing"},
		{"4 version with v prefix", version("v3.5.1"), `spec.version: "v3.5.1" is not an etcd release: leave out the v: "3.5.1"`},
		{"4 moving tag", version("latest"), "moving tag"},
		{"4 major 2", version("2.3.8"), "etcd 2 is not supported"},
		{"4 major 4", version("4.0.0"), "etcd 4 is not supported"},
		{"4 unknown minor", version("3.9.0"), "update quorate first"},
		{"4 newer patch", version("3.6.99"), "warning: spec.version: 3.6.99 is newer than 3.6.16"},
		{"53 bad release", version("3.5.1"), "warning: spec.version: 3.5.1 may lose the consistency"},
		{"9 name missing", name(""), "metadata.name: is missing"},
		{"9 upper case", name("Orders"), "metadata.name: \"Orders\" is not a DNS label"},
		{"9 dot", name("a.b"), "not a DNS label"},
		{"9 dash at the end", name("a-"), "not a DNS label"},
		{"9 too long", name(long), "has 41 characters: at most 40"},
		{"9 as long as possible", name(long[1:]), ""},
		{"9 namespace", func(c *EtcdCluster) { c.Metadata.Namespace = "a.b" }, "metadata.namespace"},
		{"7 reserved annotation", func(c *EtcdCluster) { c.Metadata.Annotations = map[string]string{"quorate.dev/x": ""} }, "metadata.annotations[quorate.dev/x]: the prefix quorate.dev/ is reserved"},
		{"7 reserved annotation below", func(c *EtcdCluster) { c.Metadata.Annotations = map[string]string{"a.quorate.dev/x": ""} }, "is reserved"},
		{"7 reserved label of the pod", func(c *EtcdCluster) {
			c.Spec.PodTemplate.Metadata.Labels = map[string]string{"app.kubernetes.io/name": "x"}
		}, "spec.podTemplate.metadata.labels[app.kubernetes.io/name]: the prefix app.kubernetes.io/ is reserved"},
		{"7 free annotation", func(c *EtcdCluster) { c.Metadata.Annotations = map[string]string{"example.com/x": "any: thing"} }, ""},
		{"7 bad label key", func(c *EtcdCluster) { c.Metadata.Labels = map[string]string{"a b": "x"} }, "is not a key"},
		{"7 bad label value", func(c *EtcdCluster) { c.Metadata.Labels = map[string]string{"a": "x y"} }, "is not a label value"},
		{"54 repository", repository("quay.io/coreos/etcd"), ""},
		{"54 registry with port", repository("registry:5000/mirror/etcd"), ""},
		{"54 repository with tag", repository("quay.io/coreos/etcd:v3.6.16"), "leave out the tag"},
		{"54 short repository with tag", repository("etcd:v3.6.16"), "leave out the tag"},
		{"54 repository with digest", repository("quay.io/etcd@sha256:00"), "leave out the digest"},
		{"54 repository with scheme", repository("https://quay.io/etcd"), "leave out the scheme"},
		{"54 repository in capitals", repository("quay.io/Etcd"), "not an image repository"},
		{"54 repository with a gap", repository("quay.io//etcd"), "not an image repository"},
		{"54 registry with bad port", repository("quay.io:x/etcd"), "not an image repository"},
		{"3 storage missing", func(c *EtcdCluster) { c.Spec.Storage.Size = resource.Quantity{} }, "spec.storage.size: must be given"},
		{"class change that is none", func(c *EtcdCluster) { c.Spec.Storage.ClassChange = "Maybe" }, "spec.storage.classChange: \"Maybe\" is not one of Refuse, Replace"},
		{"class change to no class", func(c *EtcdCluster) { c.Spec.Storage.ClassChange = ClassChangeReplace }, "spec.storage.classChange: is Replace and no class is named"},
		{"3 storage negative", func(c *EtcdCluster) { c.Spec.Storage.Size = resource.MustParse("-1Gi") }, "spec.storage.size"},
		{"quota as large as the volume", quota("8Gi"), "warning"},
		{"quota above the volume", quota("9Gi"), "spec.etcd.quotaBackendBytes: is 9Gi, more than the volume of 8Gi"},
		{"335 default quota above the volume", size("1Gi"), "warning: spec.storage.size: a quota of 2Gi wants a volume of 4608Mi, and storage.size is 1Gi"},
		{"335 a volume on which real members died at 61 % of the quota", size("2560Mi"), "write a size of 4608Mi or more, or etcd.quotaBackendBytes of at most 1Gi"},
		{"335 room for the default quota", size("4608Mi"), ""},
		{"335 not with the log of 3.5, which is ten times as long", func(c *EtcdCluster) { size("4608Mi")(c); c.Spec.Version = "3.5.35" }, "a log with a snapshot every 100000 entries"},
		{"335 nor with the same asked for", func(c *EtcdCluster) {
			size("4608Mi")(c)
			c.Spec.Etcd.Options = map[string]string{"snapshot-count": "100000"}
		}, "wants a volume of 6016Mi"},
		{"335 a volume for no quota at all", size("256Mi"), "write a size of 4608Mi or more, or a smaller etcd.quotaBackendBytes"},
		{"335 small volume with a small quota", func(c *EtcdCluster) { size("1Gi")(c); quota("256Mi")(c) }, ""},
		{"quota of nothing", quota("0"), "must be more than 0"},
		{"quota negative", quota("-1"), "must be more than 0"},
		{"quota in parts of a byte", quota("1500m"), "whole number of bytes"},
		{"quota beyond the advice", func(c *EtcdCluster) { c.Spec.Storage.Size = resource.MustParse("20Gi"); quota("10Gi")(c) }, "warning: spec.etcd.quotaBackendBytes"},
		{"compaction by time", compaction("periodic", "8h"), ""},
		{"compaction by hours", compaction("periodic", "8"), ""},
		{"compaction by revisions", compaction("revision", "1000"), ""},
		{"compaction in an unknown mode", compaction("hourly", "8h"), `spec.etcd.autoCompaction.mode: "hourly" is not one of periodic, revision`},
		{"compaction by no time", compaction("periodic", "eight"), "is not a duration"},
		{"compaction by no number", compaction("revision", "8h"), "is not a number of revisions"},
		{"compaction without retention", compaction("periodic", ""), "warning: spec.etcd.autoCompaction.retention"},
		{"soak of nothing", soak(0), ""},
		{"soak negative", soak(-time.Second), "spec.upgrade.soak"},
		{"soak too long", soak(61 * time.Minute), "must be 0s to 1h"},
		{"8 plain option", option("heartbeat-interval", "100"), ""},
		{"8 snapshot count", option("snapshot-count", "5000"), ""},
		{"8 tick advance", option("initial-election-tick-advance", "false"), ""},
		{"56 deprecated flag", option("experimental-compaction-batch-limit", "500"), "warning: spec.etcd.options.experimental-compaction-batch-limit: experimental-compaction-batch-limit is deprecated, and etcd 3.7 removes it: write compaction-batch-limit"},
		{"56 feature gate that etcd does not have", option("feature-gates", "InitialCorruptChekc=true"), "spec.etcd.options.feature-gates"},
		{"8 dashes", option("--heartbeat-interval", "100"), `leave out the dashes: "heartbeat-interval"`},
		{"8 flag with value", option("--heartbeat-interval=100", ""), "write the name alone as the key"},
		{"8 flag and value", option("--heartbeat-interval 100", ""), "write the name alone as the key"},
		{"8 reserved flag with dashes", option("--data-dir=/x", ""), "is reserved"},
		{"8 switch without value", option("enable-pprof", ""), "the value is empty"},
		{"8 environment variable", option("ETCD_HEARTBEAT_INTERVAL", "100"), `"heartbeat-interval"`},
		{"no learners", option("max-learners", "0"), "spec.etcd.options.max-learners: is refused: a member joins as a learner, so that none could ever join or be replaced"},
		{"8 unknown flag", option("heartbeat-intervall", "100"), "spec.etcd.options.heartbeat-intervall: etcd has no flag \"heartbeat-intervall\", did you mean heartbeat-interval?"},
		{"56 removed flag", option("log-output", "stderr"), "removed: write log-outputs"},
		{"56 two names of a flag", func(c *EtcdCluster) {
			c.Spec.Etcd.Options = map[string]string{"compaction-batch-limit": "1", "experimental-compaction-batch-limit": "2"}
		}, "spec.etcd.options: compaction-batch-limit and experimental-compaction-batch-limit are one setting"},
		{"unknown mode", func(c *EtcdCluster) { c.Spec.Mode = "enforce" }, "spec.mode: \"enforce\" is not one of Enforce, Observe, did you mean Enforce?"},
		{"560 authorities change", rotate("2026-12", 0, 0, -1), ""},
		{"560 a word of letters", rotate("after-the-leak_2", 0, 0, -1), ""},
		{"560 no word", rotate("2026 12", 0, 0, -1), "spec.tls.rotate: \"2026 12\" is no word"},
		{"560 a long word", rotate(strings.Repeat("a", 64), 0, 0, -1), "spec.tls.rotate"},
		{"560 short lives", rotate("", 10*time.Minute, 30*time.Minute, 0), ""},
		{"560 too short a life", rotate("", 9*time.Minute, 0, -1), "spec.tls.lifetimes.certificate: is 9m0s and must be 10m to 43800h"},
		{"560 too short a life of an authority", rotate("", 0, 20*time.Minute, 0), "spec.tls.lifetimes.authority: is 20m0s and must be 30m to 262800h"},
		{"560 an authority for few certificates", rotate("", time.Hour, 2*time.Hour, 0), "must be at least three times lifetimes.certificate"},
		{"560 no overlap", rotate("", 0, 0, 0), ""},
		{"560 an overlap of years", rotate("", 0, 0, 721*time.Hour), "spec.tls.overlap: is 721h0m0s and must be 0s to 720h"},
		{"560 an overlap that the authority does not live through", rotate("", 10*time.Minute, time.Hour, 11*time.Minute), "must be at most a sixth of lifetimes.authority"},
		{"560 the overlap that is left out, too", rotate("", 10*time.Minute, time.Hour, -1), "spec.tls.overlap: is 24h0m0s"},
		{"560 without certificates of quorate's", func(c *EtcdCluster) { c.Spec.TLS = TLSSpec{Mode: TLSDisabled, Rotate: "2026-12"} }, "spec.tls: rotate and lifetimes are for mode Managed"},
		{"unknown TLS mode", func(c *EtcdCluster) { c.Spec.TLS.Mode = "Off" }, "spec.tls.mode"},
		{"wave", wave(99), ""},
		{"wave too high", wave(100), "spec.upgrade.wave: is 100 and must be 0 to 99"},
		{"wave below zero", wave(-1), "spec.upgrade.wave"},
		{"577 a check by HTTP", checks(asks("https://orders.example.com/healthz?deep=1"), UpgradeCheck{Name: "b", HTTP: &HTTPCheck{URL: "http://[2001:db8::1]:8080", Status: 204}}), ""},
		{"577 a check by a query", checks(queries("http://prometheus.monitoring.svc:9090/prefix", "up")), ""},
		{"577 the limits of times", checks(lasting(time.Second, 0)), ""},
		{"577 the other limits of times", checks(lasting(30*time.Second, time.Hour)), ""},
		{"577 too short", checks(lasting(999*time.Millisecond, 0)), "spec.upgrade.checks[0].timeout: is 999ms and must be 1s to 30s"},
		{"577 too long", checks(lasting(31*time.Second, 0)), "spec.upgrade.checks[0].timeout"},
		{"577 for less than nothing", checks(lasting(time.Second, -1)), "spec.upgrade.checks[0].for: is -1ns and must be 0s to 1h"},
		{"577 for too long", checks(lasting(time.Second, time.Hour+1)), "spec.upgrade.checks[0].for"},
		{"577 status of an error", checks(answers(599)), ""},
		{"577 no status", checks(answers(600)), "spec.upgrade.checks[0].http.status: is 600 and must be 200 to 599"},
		{"577 status of no answer", checks(answers(199)), "spec.upgrade.checks[0].http.status"},
		{"577 a check without a name", checks(UpgradeCheck{HTTP: &HTTPCheck{URL: "http://a"}}), "spec.upgrade.checks[0].name: is missing"},
		{"577 a check of nothing", checks(UpgradeCheck{Name: "a"}), "spec.upgrade.checks[0]: must have one of http, prometheus and cronJob"},
		{"577 a check of two things", checks(UpgradeCheck{Name: "a", HTTP: &HTTPCheck{URL: "http://a"}, Prometheus: &PrometheusCheck{URL: "http://a", Query: "up"}}), "must have one of http, prometheus and cronJob"},
		{"603 a check of a CronJob and another thing", checks(UpgradeCheck{Name: "a", HTTP: &HTTPCheck{URL: "http://a"}, CronJob: &CronJobCheck{Name: "smoke"}}), "must have one of http, prometheus and cronJob"},
		{"603 a check of a CronJob", checks(runs("smoke-test.v2")), ""},
		{"603 a long name", checks(runs(strings.Repeat("a", 52))), ""},
		{"603 a longer name than Kubernetes takes", checks(runs(strings.Repeat("a", 53))), "spec.upgrade.checks[0].cronJob.name: "},
		{"603 no name", checks(runs("")), "spec.upgrade.checks[0].cronJob.name: "},
		{"603 a CronJob of another namespace", checks(runs("other/smoke")), `spec.upgrade.checks[0].cronJob.name: "other/smoke" is not the name of a CronJob: write lower-case letters`},
		{"577 the same name twice", checks(asks("http://a"), asks("http://b")), `spec.upgrade.checks[1].name: "a" is listed twice`},
		{"577 too many checks", checks(nineChecks()...), "spec.upgrade.checks: has 9 checks and at most 8 are allowed"},
		{"577 no URL", checks(asks("")), badURL},
		{"577 no host", checks(asks("http:///healthz")), "is not a host with a port"},
		{"577 a port alone", checks(asks("http://:80/")), "is not a host with a port"},
		{"577 another scheme", checks(asks("file:///etc/passwd")), badURL},
		{"577 a space", checks(asks("http://a/b c")), badURL},
		{"577 two lines", checks(asks("http://a/\nb")), badURL},
		{"577 a long URL", checks(asks("http://a/" + strings.Repeat("a", 2048))), badURL},
		{"577 a password, which is not repeated", checks(asks("http://user:s3cret@a/")), "spec.upgrade.checks[0].http.url: has a user or a password, and everyone who reads the file could see it"},
		{"577 a fragment", checks(asks("http://a/#b")), "has a part behind #"},
		{"577 an empty fragment", checks(asks("http://a/#")), "has a part behind #"},
		{"577 a port that is none", checks(asks("http://a:65536/")), "has no port between 1 and 65535"},
		{"577 an address that some read as another", checks(asks("http://0x7f000001/")), "is not a name or an address"},
		{"577 half an address", checks(asks("http://127.1/")), "is not a name or an address"},
		{"577 an address with a zone", checks(asks("http://[fe80::1%25eth0]/")), "is not a host with a port"},
		{"577 a query in the URL", checks(queries("http://a?query=up", "up")), "spec.upgrade.checks[0].prometheus.url: has a part behind ?"},
		{"577 a query mark in the URL", checks(queries("http://a/?", "up")), "has a part behind ?"},
		{"577 no query", checks(queries("http://a", " ")), "spec.upgrade.checks[0].prometheus.query: must have 1 to 4096 characters"},
		{"577 a long query", checks(queries("http://a", strings.Repeat("a", 4097))), "spec.upgrade.checks[0].prometheus.query"},
		{"552 a second member for a while", surge(1, 1), ""},
		{"552 none", surge(1, 0), ""},
		{"552 none beside several", surge(3, 0), ""},
		{"552 two more", surge(1, 2), "spec.upgrade.maxSurge: is 2 and must be 0 or 1"},
		{"552 less than none", surge(1, -1), "spec.upgrade.maxSurge: is -1"},
		{"552 beside several", surge(3, 1), "warning: spec.upgrade.maxSurge: does nothing where replicas is 3"},
		{"142 taken over", takeOver("https://git.example.com/etcd.git@main:clusters#default/12"), ""},
		{"142 taken over from a directory", takeOver("/srv/my git@main#eu-1/1"), ""},
		{"142 taken over from an incomplete owner", takeOver("https://git.example.com/etcd.git"), "spec.takeOver: \"https://git.example.com/etcd.git\" is not an owner: copy the one that the hold"},
		{"142 taken over without a number", takeOver("https://git.example.com/etcd.git@main#default"), "is not an owner"},
		{"142 taken over with another number", takeOver("/srv/git@main#default/01"), "is not an owner"},
		{"142 taken over from an odd instance", takeOver("/srv/git@main#De fault/1"), "is not an owner"},
		{"142 taken over from two lines", takeOver("/srv/git\n@main#default/1"), "is not an owner"},
		{"142 taken over from no source", takeOver("#default/1"), "is not an owner"},
		{"142 taken over from a long name", takeOver("/" + strings.Repeat("a", 1020) + "@main#default/1"), "spec.takeOver: is longer than 1024 characters"},
		{"path by steps", func(c *EtcdCluster) { c.Spec.Upgrade.Path = PathStepwise }, ""},
		{"unknown path", func(c *EtcdCluster) { c.Spec.Upgrade.Path = "Stepwize" }, "did you mean Stepwise?"},
		{"unknown backup policy", func(c *EtcdCluster) { c.Spec.Upgrade.Backup = "No" }, "spec.upgrade.backup"},
		{"requests above limits", func(c *EtcdCluster) {
			c.Spec.Etcd.Resources = corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}, Limits: corev1.ResourceList{"cpu": resource.MustParse("1")},
			}
		}, "spec.etcd.resources.requests.cpu: 2 is more than the limit, 1"},
		{"12 template", template("s3://b/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db?region=eu-west-1"), ""},
		{"12 template without UID", template("s3://b/{{ .Name }}.db"), "spec.backup.destination.objectURLTemplate: the path must contain {{ .UID }}"},
		{"15 secret in a template", template("s3://b/{{ .UID }}?token=x"), "looks like a secret"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := valid()
			c.change(cluster)
			got := lines(Validate(cluster))
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Fatalf("got:\n%s\nwant %q", got, c.want)
			}
		})
	}
}

func TestValidate8ReservedOptions(t *testing.T) {
	for _, name := range []string{
		"name", "initial-cluster", "initial-cluster-state", "initial-cluster-token", "initial-advertise-peer-urls", "data-dir", "wal-dir",
		"listen-client-urls", "listen-peer-urls", "listen-metrics-urls", "listen-client-http-urls", "advertise-client-urls",
		"cert-file", "key-file", "trusted-ca-file", "ca-file", "peer-cert-file", "peer-key-file", "peer-trusted-ca-file", "client-cert-file",
		"client-crl-file", "client-cert-auth", "peer-client-cert-auth", "auto-tls", "peer-auto-tls", "peer-cert-allowed-cn",
		"config-file", "force-new-cluster", "quota-backend-bytes", "auto-compaction-mode", "auto-compaction-retention", "enable-v2",
		"experimental-enable-v2v3", "v2-deprecation", "discovery", "discovery-srv", "discovery-password", "proxy", "unsafe-no-fsync", "strict-reconfig-check",
	} {
		for _, written := range []string{name, "--" + name, "-" + name + "=x"} {
			c := valid()
			c.Spec.Etcd.Options = map[string]string{written: "x"}
			got := lines(Validate(c))
			if !strings.Contains(got, "is reserved") && !strings.Contains(got, "is refused") && !strings.Contains(got, "has its own field") {
				t.Errorf("%s: %q", written, got)
			}
		}
	}
}

// The upgrade guide to 3.6 lets etcd start on v2 data that nobody needs, by a value that older patches refuse to start with.
func TestTheV2CheckIsSkippedWhereEtcdCan(t *testing.T) {
	for version, want := range map[string]string{
		"3.5.31": "etcd 3.5.31 does not take v2-deprecation=write-only-skip-check, which is new in 3.5.32",
		"3.5.35": "", "3.6.16": "", "3.7.3": "",
		"3.6.12": "which is new in 3.6.13",
		"3.4.45": "v2-deprecation",
	} {
		c := valid()
		c.Spec.Version = version
		c.Spec.Etcd.Options = map[string]string{"v2-deprecation": "write-only-skip-check"}
		var got []string
		for _, finding := range Validate(c) {
			if strings.Contains(finding.Field, "options") {
				got = append(got, finding.Message)
			}
		}
		if text := strings.Join(got, "\n"); (want == "") != (text == "") || !strings.Contains(text, want) {
			t.Errorf("%s: %q, not %q", version, text, want)
		}
	}
}

func TestDefaultTwiceChangesNothing(t *testing.T) {
	c := valid()
	c.Spec.Etcd.AutoCompaction.Retention = "8h"
	Default(c)
	before := SpecHash(c.Spec)
	Default(c)
	if SpecHash(c.Spec) != before || c.Spec.Etcd.AutoCompaction.Mode != "periodic" {
		t.Fatalf("%+v", c.Spec)
	}
}

func TestSpecHash(t *testing.T) {
	parse := func(text string) string {
		s := one(text)
		if len(s.Clusters) != 1 {
			t.Fatal(lines(s.Problems))
		}
		return SpecHash(s.Clusters[0].Spec)
	}
	base := parse(good)
	if len(base) != 12 {
		t.Fatalf("%q", base)
	}
	if got := parse(strings.Replace(good, "8Gi", "8192Mi", 1) + "  tls: {mode: Managed} # the default\n"); got != base {
		t.Error("the same spec in other words has another hash")
	}
	if got := parse(strings.Replace(good, "orders", "basket", 1)); got != base {
		t.Error("the name is in the hash")
	}
	if got := parse(strings.Replace(good, "8Gi", "9Gi", 1)); got == base {
		t.Error("the size is not in the hash")
	}
	// Records hold this hash: a change here makes quorate act again on upgrade.
	if want := "bb1504a8e724"; base != want {
		t.Errorf("the hash changed from %s to %s", want, base)
	}
}

// nineChecks are more than are allowed, and good ones.
func nineChecks() (all []UpgradeCheck) {
	for name := range strings.SplitSeq("a b c d e f g h i", " ") {
		all = append(all, UpgradeCheck{Name: name, HTTP: &HTTPCheck{URL: "http://a"}})
	}
	return all
}

func TestRepairTimesHaveBounds(t *testing.T) {
	for _, c := range []struct {
		repair RepairSpec
		want   string
	}{
		{RepairSpec{After: &metav1.Duration{Duration: 25 * time.Hour}}, "is 25h0m0s and must be 0s to 24h"},
		{RepairSpec{NodeTimeout: &metav1.Duration{Duration: -1}}, "is -1ns and must be 0s to 168h"},
		{RepairSpec{NodeTimeout: &metav1.Duration{Duration: 169 * time.Hour}}, "is 169h0m0s and must be 0s to 168h"},
		{RepairSpec{NodeTimeout: &metav1.Duration{Duration: 168 * time.Hour}}, ""},
	} {
		cluster := valid()
		cluster.Spec.Repair = c.repair
		if got := lines(Validate(cluster)); (c.want == "") != !strings.Contains(got, "spec.repair") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, not %q", c.repair, got, c.want)
		}
	}
}
