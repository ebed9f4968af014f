package schema

import (
	"fmt"
	"strings"
	"testing"
)

// What a change does that neither of its sides shows.
func TestCompare(t *testing.T) {
	cluster := func(lines ...string) string { return clusterText("orders", lines...) }
	version := func(v string) string { return strings.Replace(cluster(), "3.6.16", v, 1) }
	steps := func(v string) string { return strings.Replace(cluster("upgrade: {path: Stepwise}"), "3.6.16", v, 1) }
	other := clusterText("basket")
	web := strings.Replace(cluster(), "shop", "web", 1)
	smaller := strings.Replace(cluster(), "8Gi", "4Gi", 1)
	sum, key := strings.Repeat("0a", 32), "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"
	authed := func(v, enabled string) string {
		return strings.Replace(cluster("auth: {enabled: "+enabled+"}"), "3.6.16", v, 1)
	}
	for _, c := range []struct{ name, before, after, want string }{
		{"540 3.4 to 3.5 with authentication", authed("3.4.45", "true"), authed("3.5.35", "true"), "spec.version: 3.4.45 → 3.5.35: etcd supports no rollout between 3.4 and 3.5 while authentication is on"},
		{"540 3.4 to 3.5, switched off with it", authed("3.4.45", "true"), authed("3.5.35", "false"), "warning: spec.version: 3.4.45 → 3.5.35"},
		{"540 3.4 to 3.5, switched on with it", version("3.4.45"), authed("3.5.35", "true"), "warning: spec.version: 3.4.45 → 3.5.35"},
		{"540 3.5 to 3.6 with authentication", authed("3.5.35", "true"), authed("3.6.16", "true"), "warning: spec.version: 3.5.35 → 3.6.16"},
		{"17 no change", cluster(), cluster(), ""},
		{"a comment", cluster(), "# a comment\n" + cluster(), ""},
		{"6 volume shrinks", cluster(), strings.Replace(cluster(), "8Gi", "4Gi", 1), "a.yaml:7:13: spec.storage.size: shrinks from 8Gi to 4Gi, which volumes cannot"},
		{"6 volume in other words", cluster(), strings.Replace(cluster(), "8Gi", "8192Mi", 1), ""},
		{"volume grows", cluster(), strings.Replace(cluster(), "8Gi", "9Gi", 1), ""},
		{"5 storage class, by replacement", cluster(), strings.Replace(cluster(), "8Gi", "8Gi, storageClassName: fast, classChange: Replace", 1), "warning: spec.storage.storageClassName: changes from the default class to \"fast\": every member is replaced"},
		{"5 storage class, taken back", strings.Replace(cluster(), "8Gi", "8Gi, storageClassName: fast, classChange: Replace", 1), strings.Replace(cluster(), "8Gi", "8Gi, storageClassName: slow", 1), "warning: spec.storage.storageClassName: changes from \"fast\" back to \"slow\", and no more members are replaced"},
		{"a smaller quota", cluster("etcd: {quotaBackendBytes: 6Gi}"), cluster("etcd: {quotaBackendBytes: 4Gi}"), "warning: spec.etcd.quotaBackendBytes: shrinks from 6Gi to 4Gi: the cluster takes no more writes where a database has reached that"},
		{"a smaller quota, by leaving it out", cluster("etcd: {quotaBackendBytes: 4Gi}"), cluster(), "warning: spec.etcd.quotaBackendBytes: shrinks from 4Gi to 2Gi"},
		{"a larger quota", cluster(), cluster("etcd: {quotaBackendBytes: 4Gi}"), ""},
		{"5 storage class", cluster(), strings.Replace(cluster(), "8Gi", "8Gi, storageClassName: fast", 1), "spec.storage.storageClassName: changes from the default class to \"fast\", which volumes cannot: revert it, or write storage.classChange: Replace"},
		{"5 TLS", cluster(), cluster("tls: {mode: Disabled}"), "warning: spec.tls.mode: changes from Managed to Disabled: members restart twice, one at a time; between the two they speak plain text and TLS, and clients have 24h0m0s to move"},
		{"585 TLS with authentication", cluster(), cluster("tls: {mode: Disabled}\n  auth: {enabled: true, rootPasswordSecret: {name: root}}"), "spec.tls.mode: changes from Managed to Disabled with auth.enabled"},
		{"585 TLS with authentication left out of the file", cluster("auth: {enabled: true}"), cluster("tls: {mode: Disabled}"), "spec.tls.mode: changes from Managed to Disabled with auth.enabled"},
		{"585 TLS with authentication switched off", cluster("auth: {enabled: true}"), cluster("tls: {mode: Disabled}\n  auth: {enabled: false}"), "spec.tls.mode: changes from Managed to Disabled: members restart twice"},
		{"585 TLS of Secrets that are forgotten", cluster("tls: {mode: Secrets, secrets: {server: s, peer: p, client: c}}"), cluster("tls: {mode: Disabled}"), "spec.tls.secrets: is left out together with mode Secrets: keep it until the change is over"},
		{"585 TLS of Secrets", cluster("tls: {mode: Secrets, secrets: {server: s, peer: p, client: c}}"), cluster("tls: {mode: Disabled, secrets: {server: s, peer: p, client: c}}"), "warning: spec.tls.mode: changes from Secrets to Disabled"},
		{"594 another issuer", cluster(), cluster("tls: {mode: Secrets, secrets: {server: s, peer: p, client: c}, overlap: 1h}"), "warning: spec.tls.mode: changes from Managed to Secrets: members restart three times, one at a time: they trust both issuers, show the other one's certificates, and trust it alone; clients have 1h0m0s before and after the second time"},
		{"595 quorate issues", cluster("tls: {mode: Secrets, secrets: {server: s, peer: p, client: c}}"), cluster("tls: {secrets: {server: s, peer: p, client: c}}"), "warning: spec.tls.mode: changes from Secrets to Managed: members restart three times"},
		{"595 quorate issues, Secrets forgotten", cluster("tls: {mode: Secrets, secrets: {server: s, peer: p, client: c}}"), cluster(), "spec.tls.secrets: is left out together with mode Secrets: keep it until the change is over"},
		{"5 first address family", cluster("network: {ipFamilies: [IPv4]}"), cluster("network: {ipFamilies: [IPv6]}"), "the first family changes from IPv4 to IPv6"},
		{"second address family", cluster("network: {ipFamilies: [IPv4]}"), cluster("network: {ipFamilies: [IPv4, IPv6], ipFamilyPolicy: PreferDualStack}"), ""},
		{"5 pod template", cluster(), cluster("podTemplate: {metadata: {labels: {a: b}}}"), ""},
		{"53 patch", version("3.6.12"), version("3.6.16"), ""},
		{"53 minor", version("3.5.35"), version("3.6.16"), "warning: spec.version: 3.5.35 → 3.6.16"},
		{"53 two minors", version("3.4.45"), version("3.6.16"), "spec.version: 3.4.45 → 3.6.16: etcd must not skip a minor"},
		{"53 minor down", version("3.6.16"), version("3.5.35"), "warning: spec.version: 3.6.16 → 3.5.35: a downgrade, through etcd's own API"},
		{"53 patch down", version("3.6.16"), version("3.6.12"), "warning: spec.version: 3.6.16 → 3.6.12: this reverts fixes"},
		{"55 the log of 3.5", version("3.6.16"), version("3.7.3"), "warning: spec.version: 3.6.16 → 3.7.3: 3.7 panics at log entries from before 3.6"},
		{"333 the log of 3.5, from two minors below", version("3.5.35"), version("3.7.3"), "it restarts every member once more on 3.6 first"},
		{"333 the log of 3.4, by steps", steps("3.4.45"), steps("3.7.3"), "it restarts every member once more on 3.6 first"},
		{"55 floor", version("3.5.12"), version("3.6.16"), "spec.version: 3.5.12 → 3.6.16: every member must first run 3.5.32 or later"},
		{"130 file removed", cluster() + "---\n" + other, other, "a.yaml: EtcdCluster shop/orders is no longer in Git, which deletes nothing"},
		{"130 file removed of a cluster that is only observed", cluster("mode: Observe") + "---\n" + other, other, ""},
		{"130 file removed of a deleted cluster", cluster("state: Deleted") + "---\n" + other, other, ""},
		{"130 document that became bad", cluster() + "---\n" + other, cluster("replica: 3") + "---\n" + other, ""},
		{"130 document that became unreadable", cluster(), "kind: {{ if x }}\n  - [\n", ""},
		{"136 namespace renamed", cluster(), strings.Replace(cluster(), "shop", "web", 1), "shop/orders is no longer in Git, but web/orders is: a cluster cannot change its namespace"},
		{"130 deleted with its volumes", cluster(), cluster("state: Deleted", "deletion: {volumes: Delete}"), "warning: spec.deletion.volumes: is Delete: the volumes and all data on them are deleted permanently"},
		{"130 deleted without a backup", cluster(), cluster("state: Deleted", "deletion: {backup: Skip}"), "warning: spec.deletion.backup: is Skip"},
		{"130 deleted with its volumes, as said before", cluster("deletion: {volumes: Delete, backup: Skip}"), cluster("state: Deleted", "deletion: {volumes: Delete, backup: Skip}"), "warning: spec.deletion.volumes: is Delete"},
		{"130 deleted with its volumes later", cluster("state: Deleted"), cluster("state: Deleted", "deletion: {volumes: Delete}"), "warning: spec.deletion.volumes: is Delete"},
		{"130 deleted as before", cluster("state: Deleted", "deletion: {volumes: Delete, backup: Skip}"), cluster("state: Deleted", "deletion: {volumes: Delete, backup: Skip}", "podTemplate: {metadata: {labels: {a: b}}}"), ""},
		{"130 file removed of a cluster that exists elsewhere, too", cluster() + "---\n" + web, web, "a.yaml: EtcdCluster shop/orders is no longer in Git, which deletes nothing"},
		{"130 document that became bad and lost its kind", cluster() + "---\n" + other, strings.Replace(cluster(), "kind: EtcdCluster\n", "", 1) + "---\n" + other, ""},
		{"18 recovery", cluster(), cluster("recovery: {clusterID: c1, member: orders-0}"), "warning: spec.recovery: recovers cluster \"c1\" from \"member orders-0\": what only the lost members had is lost"},
		{"18 recovery of an observed cluster", cluster(), cluster("mode: Observe", "recovery: {clusterID: c1, objectURL: \"s3://b/1.db\"}"), "warning: spec.recovery: recovers"},
		{"18 recovery as before", cluster("recovery: {clusterID: c1, member: orders-0}"), cluster("recovery: {clusterID: c1, member: orders-0}", "mode: Enforce"), ""},
		{"18 recovery is over", cluster("recovery: {clusterID: c1, member: orders-0}"), cluster(), ""},
		{"142 taken over", cluster(), cluster(`takeOver: "/srv/git@main#default/1"`), "warning: spec.takeOver: takes the cluster from \"/srv/git@main#default/1\" with this change"},
		{"142 taken over before", cluster(`takeOver: "/srv/git@main#default/1"`), cluster(`takeOver: "/srv/git@main#default/1"`, "podTemplate: {metadata: {labels: {a: b}}}"), ""},
		{"deleted cluster runs again", cluster("state: Deleted"), cluster(), ""},
		{"6 kept volumes shrink", cluster("state: Deleted"), smaller, "spec.storage.size: shrinks"},
		{"volumes that are gone shrink", cluster("state: Deleted", "deletion: {volumes: Delete}"), smaller, ""},
		{"6 volume of an observed cluster", cluster("mode: Observe"), smaller, ""},
		{"53 major", version("3.6.16"), version("4.0.0"), ""}, // held: validation says so
		{"53 two minors by steps", steps("3.4.34"), steps("3.6.16"), "warning: spec.version: 3.5.35 → 3.6.16: 3.6 does not start on data of the v2 API"},
		{"53 by steps to a bad release", steps("3.4.34"), steps("3.5.2"), "spec.version: 3.5.2 may lose"},
		{"53 patch by steps", steps("3.6.12"), steps("3.6.16"), ""},
		{"53 minor down by steps", steps("3.7.3"), steps("3.6.16"), "warning: spec.version: 3.7.3 → 3.6.16: a downgrade"},
		{"53 to a bad release", version("3.5.35"), version("3.5.2"), "a.yaml:5:3: spec.version: 3.5.2 may lose"},
		{"53 to a release that validation warns of", version("3.7.0"), version("3.7.1"), ""},
		{"53 still at a bad release", version("3.5.2"), strings.Replace(version("3.5.2"), "8Gi", "9Gi", 1), ""},
		{"restore removed", restoreText("again", "source: {objectURL: s3://b/x}"), "", ""},
		{"backup changed", backupText(`source: {clusterURL: "https://a:1"}`, `destination: {objectURLTemplate: "s3://b/{{ .UID }}"}`), backupText(`source: {clusterURL: "https://b:1"}`, `destination: {objectURLTemplate: "s3://b/{{ .UID }}"}`), "warning: spec: is changed, which makes it another backup"},
		{"166 restore accepts", restoreText("again", "source: {objectURL: s3://b/x}"), restoreText("again", "source: {objectURL: s3://b/x, acceptHashMismatch: \""+sum+"\"}"), "warning: spec.source.acceptHashMismatch: lets a backup be restored whose keys are not those that etcd hashed"},
		{"166 restore accepts no more", restoreText("again", "source: {objectURL: s3://b/x, acceptHashMismatch: \""+sum+"\"}"), restoreText("again", "source: {objectURL: s3://b/x}"), ""},
		{"166 recovery accepts", cluster("recovery: {clusterID: c1, objectURL: s3://b/x}"), cluster("recovery: {clusterID: c1, objectURL: s3://b/x, acceptHashMismatch: \"" + sum + "\"}"), "warning: spec.recovery.acceptHashMismatch: lets a backup be restored"},
		{"restore accepts what is not signed", restoreText("again", "source: {objectURL: s3://b/x}"), restoreText("again", "source: {objectURL: s3://b/x, acceptUnsigned: \""+sum+"\"}"), "warning: spec.source.acceptUnsigned: lets a backup be restored whose manifest is not signed"},
		{"restore trusts a key", restoreText("again", "source: {objectURL: s3://b/x}"), restoreText("again", "source: {objectURL: s3://b/x, trustedKeys: [\""+key+"\"]}"), "warning: spec.source.trustedKeys: names the keys by which the backup must be signed"},
		{"restore trusts a key no more", restoreText("again", "source: {objectURL: s3://b/x, trustedKeys: [\""+key+"\"]}"), restoreText("again", "source: {objectURL: s3://b/x}"), ""},
		{"recovery accepts what is not signed", cluster("recovery: {clusterID: c1, objectURL: s3://b/x}"), cluster("recovery: {clusterID: c1, objectURL: s3://b/x, acceptUnsigned: \"" + sum + "\"}"), "warning: spec.recovery.acceptUnsigned: lets a backup be restored"},
		{"restore changed", restoreText("again", "source: {objectURL: s3://b/x}"), restoreText("again", "source: {objectURL: s3://b/y}"), "warning: spec: is changed, which makes it another restore"},
	} {
		t.Run(c.name, func(t *testing.T) {
			problems := Compare(one(c.before), one(c.after))
			if got := lines(problems); c.want == "" && got != "" || c.want != "" && len(problems) == 0 || !strings.Contains(got, c.want) {
				t.Errorf("got:\n%s\nwant %q", got, c.want)
			}
		})
	}
}

func TestCompare22RenamedFileIsTheSameCluster(t *testing.T) {
	before := Parse([]File{{Path: "a.yaml", Data: []byte(clusterText("orders"))}})
	after := Parse([]File{{Path: "teams/b.yaml", Data: []byte(clusterText("orders"))}})
	if got := Compare(before, after); len(got) > 0 {
		t.Errorf("got:\n%s", lines(got))
	}
}

// The order of the objects is not that of the files, and the problems follow the
// files.
func TestCompare19IsInTheOrderOfTheFiles(t *testing.T) {
	files := func(size string) []File {
		var all []File
		for _, f := range []struct{ path, name string }{{"c.yaml", "a"}, {"a.yaml", "b"}, {"b.yaml", "c"}} {
			all = append(all, File{Path: f.path, Data: []byte(strings.Replace(clusterText(f.name), "8Gi", size, 1))})
		}
		return all
	}
	var places []string
	for _, p := range Compare(Parse(files("8Gi")), Parse(files("4Gi"))) {
		places = append(places, p.File+" "+p.Object)
	}
	if got, want := strings.Join(places, ", "), "a.yaml EtcdCluster shop/b, b.yaml EtcdCluster shop/c, c.yaml EtcdCluster shop/a"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func BenchmarkCompare10000Clusters(b *testing.B) {
	files := make([]File, 10000)
	for i := range files {
		files[i] = File{Path: fmt.Sprintf("%05d.yaml", i), Data: []byte(clusterText(fmt.Sprintf("c%d", i)))}
	}
	set := Parse(files)
	for b.Loop() {
		if problems := Compare(set, set); len(problems) > 0 {
			b.Fatal(lines(problems))
		}
	}
}
