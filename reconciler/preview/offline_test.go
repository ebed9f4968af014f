package preview

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/schema"
)

// offlineOptions are the daemon's settings, with a clock that stands still.
func offlineOptions() Options {
	return Options{
		Render: reconcilertest.OrdersOptions(), BackupURL: "s3://backups/{{ .UID }}.db?region=eu-west-1",
		Now: func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) },
	}
}

// fromSecrets takes the certificates from Secrets that somebody else makes.
func fromSecrets(c *schema.EtcdCluster) {
	c.Spec.TLS = schema.TLSSpec{Mode: schema.TLSSecrets, Secrets: schema.TLSSecretNames{Server: "s", Peer: "p", Client: "c"}}
}

// moves are the steps that move the three members to ports of theirs in plain text.
func moves(ports ...string) string {
	var steps []string
	for _, member := range []string{"orders-0", "orders-1", "orders-2"} {
		var urls []string
		for _, port := range ports {
			urls = append(urls, "http://"+member+".orders-peers.shop.svc"+port)
		}
		steps = append(steps, "move "+member+" in the member list to "+strings.Join(urls, " and "))
	}
	return strings.Join(steps, ", ")
}

// apart keeps members away from those of other namespaces; nil is none of them, and an empty selector all.
func apart(namespaces *metav1.LabelSelector) func(*schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) {
		c.Spec.PodTemplate.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "etcd"}}, NamespaceSelector: namespaces},
		}}}
	}
}

func TestPlanOffline(t *testing.T) {
	for _, test := range []struct {
		name          string
		before, after *desired.Cluster
		change        Change
		// fields, hold and actions are parts of what is said, restarts a number.
		fields, hold, actions string
		restarts              int
	}{
		{"17 no change", clustertest.InGit(), clustertest.InGit(), Unchanged, "", "", "", 0},
		{"a new cluster", nil, clustertest.InGit(), Added, "", "", "create the record, issue certificates, apply Service orders-peers, apply PodDisruptionBudget orders, create 3 members, record cluster (new), apply Service orders-client", 0},
		{"a new cluster with certificates of somebody else", nil, clustertest.InGit(fromSecrets), Added, "", "", "create the record, apply Service orders-peers, apply PodDisruptionBudget orders, create 3 members, record cluster (new), apply Service orders-client", 0},
		{"21 a file that is gone", clustertest.InGit(), nil, Removed, "", "", "", 0},
		{"a file with errors", clustertest.InGit(), &desired.Cluster{EtcdCluster: clustertest.InGit().EtcdCluster, Problems: []string{"orders.yaml:3: no"}}, Held, "", "orders.yaml:3: no", "", 0},
		{"a file that is mended", &desired.Cluster{EtcdCluster: clustertest.InGit().EtcdCluster, Problems: []string{"no"}}, clustertest.InGit(), Changed, "", "", "", 0},
		{"53 a minor up", clustertest.InGit(), clustertest.InGit(clustertest.ToVersion("3.6.16")), Changed, "spec.version", "", "back up through orders-0, start the roll 3.5.35 → 3.6.16, apply PodDisruptionBudget orders, restart orders-2 3.5.35 → 3.6.16", 3},
		{"55 below the floor", clustertest.InGit(clustertest.ToVersion("3.5.20")), clustertest.InGit(clustertest.ToVersion("3.6.16")), Changed, "spec.version", "cannot go from 3.5.20 to 3.6.16", "", 0},
		{"24 an older commit", clustertest.InGit(clustertest.ToVersion("3.6.16")), clustertest.InGit(), Changed, "spec.version", "", "back up through orders-0, enable the downgrade 3.6 → 3.5, apply PodDisruptionBudget orders, start the roll 3.6.16 → 3.5.35, restart orders-2 3.6.16 → 3.5.35", 3},
		{"53 a minor down that etcd has no way for", clustertest.InGit(), clustertest.InGit(clustertest.ToVersion("3.4.45")), Changed, "spec.version", "orders-0 cannot go from 3.5.35 to 3.4.45", "", 0},
		{"53 by steps", clustertest.InGit(clustertest.ToVersion("3.4.34")), clustertest.InGit(clustertest.ToVersion("3.7.3"), reconcilertest.Stepwise), Changed, "spec.upgrade.path, spec.version", "", "back up through orders-0, start the roll 3.4.34 → 3.5.35, apply PodDisruptionBudget orders, restart orders-2 3.4.34 → 3.5.35", 9},
		{"55 through the log of 3.5", clustertest.InGit(clustertest.ToVersion("3.6.16")), clustertest.InGit(clustertest.ToVersion("3.7.3")), Changed, "spec.version", "", "start the roll on 3.6.16, apply PodDisruptionBudget orders, restart orders-2 on 3.6.16", 6},
		{"a setting", clustertest.InGit(), clustertest.InGit(func(c *schema.EtcdCluster) { c.Spec.Etcd.Options = map[string]string{"heartbeat-interval": "200"} }), Changed, "spec.etcd.options.heartbeat-interval", "", "start the roll on 3.5.35", 3},
		{"18 a setting and a version", clustertest.InGit(), clustertest.InGit(clustertest.ToVersion("3.6.16"), func(c *schema.EtcdCluster) { c.Spec.Etcd.Options = map[string]string{"heartbeat-interval": "200"} }), Changed, "spec.etcd.options.heartbeat-interval, spec.version", "", "back up through orders-0, start the roll 3.5.35 → 3.6.16, apply PodDisruptionBudget orders, restart orders-2 3.5.35 → 3.6.16, restart orders-1 3.5.35 → 3.6.16", 3},
		{"18 54 another repository and resources", clustertest.InGit(), clustertest.InGit(func(c *schema.EtcdCluster) {
			c.Spec.Image.Repository = "registry.example:5000/etcd"
			c.Spec.PodTemplate.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}), Changed, "spec.image.repository, spec.podTemplate.spec.resources.requests.cpu", "", "start the roll on 3.5.35, apply PodDisruptionBudget orders, restart orders-2 on 3.5.35", 3},
		{"18 a window, the pace and the place of backups restart nobody", clustertest.InGit(), clustertest.InGit(func(c *schema.EtcdCluster) {
			c.Spec.Maintenance = []schema.MaintenanceWindow{{Schedule: "0 2 * * 6", Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "UTC"}}
			c.Spec.Upgrade.Path = schema.PathStepwise
			c.Spec.Backup.Destination.ObjectURLTemplate = "s3://others/{{ .UID }}.db"
		}), Changed, "spec.backup.destination.objectURLTemplate, spec.maintenance[0].duration, spec.maintenance[0].schedule, spec.maintenance[0].timeZone, spec.upgrade.path", "", "record that 3.5.35 is applied", 0},
		{"a label", clustertest.InGit(), clustertest.InGit(func(c *schema.EtcdCluster) { c.Metadata.Labels = map[string]string{"team.io/name": "checkout"} }), Changed, `metadata.labels["team.io/name"]`, "", "apply Service orders-peers, apply Service orders-client, apply PodDisruptionBudget orders, apply StatefulSet orders", 0},
		{"an annotation", clustertest.InGit(), clustertest.InGit(func(c *schema.EtcdCluster) { c.Metadata.Annotations = map[string]string{"owner": "ada"} }), Changed, "metadata.annotations.owner", "", "apply StatefulSet orders", 0},
		{"18 37 size and version", clustertest.InGit(), clustertest.InGit(clustertest.ToVersion("3.6.16"), func(c *schema.EtcdCluster) { c.Spec.Replicas = 5 }), Changed, "spec.replicas, spec.version", "", "back up through orders-0, start the roll 3.5.35 → 3.6.16", 3},
		{"18 147 version and TLS", clustertest.InGit(), clustertest.InGit(clustertest.ToVersion("3.6.16"), func(c *schema.EtcdCluster) { c.Spec.TLS.Mode = schema.TLSDisabled }), Changed, "spec.tls.mode, spec.version", "", "back up through orders-0, start the roll 3.5.35 → 3.6.16, apply PodDisruptionBudget orders, restart orders-2 3.5.35 → 3.6.16, restart orders-1 3.5.35 → 3.6.16, move the leader orders-0 → orders-1, restart orders-0 3.5.35 → 3.6.16, end the roll, apply PodDisruptionBudget orders, record that 3.6.16 is applied, " + moves(":2380", ":2382") + ", start the roll on 3.6.16, apply PodDisruptionBudget orders, restart orders-2 on 3.6.16, move the leader orders-1 → orders-2, restart orders-1 on 3.6.16, restart orders-0 on 3.6.16, end the roll, apply PodDisruptionBudget orders, " + moves(":2380"), 6},
		{"6 storage shrinks", clustertest.InGit(), clustertest.InGit(func(c *schema.EtcdCluster) { c.Spec.Storage.Size = resource.MustParse("4Gi") }), Changed, "spec.storage.size", "spec.storage.size (8Gi to 4Gi)", "", 0},
		{"the first address family", clustertest.InGit(func(c *schema.EtcdCluster) { c.Spec.Network.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol} }), clustertest.InGit(func(c *schema.EtcdCluster) { c.Spec.Network.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} }), Changed, "spec.network.ipFamilies[0]", "spec.network.ipFamilies[0] (IPv4 to IPv6)", "", 0},
		{"the domain of certificates", clustertest.InGit(), clustertest.InGit(func(c *schema.EtcdCluster) { c.Spec.Network.ClusterDomain = "example.com" }), Changed, "spec.network.clusterDomain", "spec.network.clusterDomain (cluster.local to example.com)", "", 0},
		{"no affinity instead of the default", clustertest.InGit(), clustertest.InGit(func(c *schema.EtcdCluster) { c.Spec.PodTemplate.Spec.Affinity = &corev1.Affinity{} }), Changed, "spec.podTemplate.spec.affinity", "", "start the roll on 3.5.35", 3},
		{"a selector of all namespaces", clustertest.InGit(apart(nil)), clustertest.InGit(apart(&metav1.LabelSelector{})), Changed, "spec.podTemplate.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaceSelector", "", "start the roll on 3.5.35", 3},
		{"a selector of some namespaces", clustertest.InGit(apart(&metav1.LabelSelector{})), clustertest.InGit(apart(&metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}})), Changed, "spec.podTemplate.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaceSelector.matchLabels.team", "", "start the roll on 3.5.35", 3},
		{"a change of pace only", clustertest.InGit(), clustertest.InGit(func(c *schema.EtcdCluster) { c.Spec.Upgrade.Soak = &metav1.Duration{Duration: time.Minute} }), Changed, "spec.upgrade.soak", "", "record that 3.5.35 is applied", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, fields, actions, hold := planOffline(t, test.before, test.after)
			if r.Change != test.change || fields != test.fields || r.Restarts != test.restarts ||
				!strings.Contains(hold, test.hold) || (test.hold == "") != (hold == "") ||
				!strings.HasPrefix(actions, test.actions) || (test.actions == "") != (actions == "") {
				t.Errorf("%s, fields %q, hold %q, %d restarts:\n%s", r.Change, fields, hold, r.Restarts, actions)
			}
			if r.Key() != "shop/orders" {
				t.Errorf("it is called %q", r.Key())
			}
		})
	}
}

// planOffline plans, and says which fields change, the actions and the hold in words.
func planOffline(t *testing.T, before, after *desired.Cluster) (r ClusterReport, fields, actions, hold string) {
	t.Helper()
	r, err := clusterOffline(before, after, offlineOptions())
	if err != nil {
		t.Fatal(err)
	}
	var changed, does []string
	for _, c := range r.Changes {
		changed = append(changed, c.Field)
	}
	for _, s := range r.Steps {
		does = append(does, s.Action)
	}
	if r.Hold != nil {
		hold = r.Hold.Message
	}
	return r, strings.Join(changed, ", "), strings.Join(does, ", "), hold
}

// 128: a restore in the place of a cluster: the deletion is planned first, where it
// is not over yet, and after it a cluster of which only the record is left.
func TestRestoreInPlaceOffline(t *testing.T) {
	former := *clustertest.InGit(func(c *schema.EtcdCluster) {
		c.Spec.State, c.Spec.Deletion.Backup = schema.StateDeleted, schema.BackupSkip
	})
	restoring := func(former *schema.EtcdCluster) *desired.Cluster {
		c := clustertest.InGit(func(c *schema.EtcdCluster) { c.Spec.Replicas = 1 })
		c.Restore = &desired.Restore{Name: "back", Source: schema.RestoreSource{ObjectURL: "s3://b/1.db"}, Former: former}
		return c
	}
	for _, test := range []struct {
		name          string
		before, after *desired.Cluster
		change        Change
		fields        string
		actions, hold string
	}{
		{"of one that runs", clustertest.InGit(), restoring(&former.EtcdCluster), Changed, "spec.deletion.backup, spec.state", "begin the deletion, resize the StatefulSet 3 → 0, delete StatefulSet orders", ""},
		{"of one that is deleted", &former, restoring(&former.EtcdCluster), Changed, "spec.deletion.backup, spec.replicas, spec.state", "begin to restore s3://b/1.db (back), apply Service orders-peers, apply PodDisruptionBudget orders, create the StatefulSet, without members", ""},
		{"that is there already", restoring(&former.EtcdCluster), restoring(&former.EtcdCluster), Unchanged, "", "", ""},
		{"in nobody's place", clustertest.InGit(), restoring(nil), Changed, "spec.replicas", "", "EtcdRestore back is refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, fields, actions, hold := planOffline(t, test.before, test.after)
			if r.Change != test.change || fields != test.fields || !strings.HasPrefix(hold, test.hold) || (test.hold == "") != (hold == "") ||
				!strings.HasPrefix(actions, test.actions) || (test.actions == "") != (actions == "") {
				t.Errorf("%s, fields %q, hold %q, steps %q", r.Change, fields, hold, actions)
			}
		})
	}
}

// 21: a file that is gone leaves its cluster as it is: one that was deleted by a word in Git does not run.
func TestAFileThatIsGone(t *testing.T) {
	deleted := func(c *schema.EtcdCluster) { c.Spec.State = schema.StateDeleted }
	for name, c := range map[string]struct {
		before *desired.Cluster
		says   string
	}{
		"of one that runs":        {clustertest.InGit(), "it is left running as an orphan, and is no longer reconciled"},
		"of one that was deleted": {clustertest.InGit(deleted), "it is no longer reconciled: a deletion that is not over yet stops where it is, and what it keeps stays"},
	} {
		r, err := clusterOffline(c.before, nil, offlineOptions())
		if err != nil || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "no file names this cluster any more: "+c.says+"; ") || r.risk() != "left as it is" {
			t.Errorf("%s: %v, %q, risk %q", name, err, r.Warnings, r.risk())
		}
	}
}

// What cannot be known offline is said where it would matter, and is no hold.
func TestUnknownOffline(t *testing.T) {
	for name, test := range map[string]struct {
		before, after *desired.Cluster
		want          []string
	}{
		"an upgrade":    {clustertest.InGit(), clustertest.InGit(clustertest.ToVersion("3.6.16")), []string{"has been applied", "health and alarms", "really report", "which member leads", "the nodes have room", "the store takes a backup", "authentication"}},
		"a label":       {clustertest.InGit(), clustertest.InGit(func(c *schema.EtcdCluster) { c.Metadata.Labels = map[string]string{"a": "b"} }), []string{"has been applied", "health and alarms"}},
		"a new cluster": {nil, clustertest.InGit(), []string{"exists already", "the nodes have room"}},
		"clear text":    {nil, clustertest.InGit(func(c *schema.EtcdCluster) { c.Spec.TLS.Mode = schema.TLSDisabled }), []string{"exists already", "the nodes have room"}},
		"a second address family": {clustertest.InGit(func(c *schema.EtcdCluster) { c.Spec.Network.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol} }), clustertest.InGit(func(c *schema.EtcdCluster) {
			c.Spec.Network.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		}), []string{"has been applied", "health and alarms", "really report", "which member leads", "the nodes have room"}},
		"somebody's certificates": {nil, clustertest.InGit(fromSecrets), []string{"the Secrets of spec.tls.secrets", "exists already", "the nodes have room"}},
		"an address family":       {clustertest.InGit(), clustertest.InGit(func(c *schema.EtcdCluster) { c.Spec.Network.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} }), []string{"has been applied", "health and alarms", "really report", "which member leads", "the nodes have room", "which address family"}},
		"a recovery": {clustertest.InGit(), clustertest.InGit(func(c *schema.EtcdCluster) {
			c.Spec.Recovery = schema.RecoverySpec{ClusterID: "c1", Member: "orders-0"}
		}), []string{"has been applied", "health and alarms", "whether cluster c1 has lost its quorum, and can be recovered from member orders-0"}},
		"a removed file":   {clustertest.InGit(), nil, nil},
		"a refused change": {clustertest.InGit(), clustertest.InGit(clustertest.ToVersion("3.4.45")), []string{"has been applied"}},
		"the log of 3.5":   {clustertest.InGit(clustertest.ToVersion("3.6.16")), clustertest.InGit(clustertest.ToVersion("3.7.3")), []string{"has been applied", "health and alarms", "really report", "which member leads", "the nodes have room", "may hold entries of 3.5", "the store takes a backup", "authentication"}},
	} {
		r, err := clusterOffline(test.before, test.after, offlineOptions())
		if err != nil || len(r.Unknown) != len(test.want) {
			t.Fatalf("%s: %v, %q", name, err, r.Unknown)
		}
		for i, want := range test.want {
			if !strings.Contains(r.Unknown[i], want) {
				t.Errorf("%s: %q, want %q", name, r.Unknown[i], want)
			}
		}
	}
}

// A backup says where it goes, without the settings of the store; without a place
// the hold is shown.
func TestBackupOffline(t *testing.T) {
	options := offlineOptions()
	r, err := clusterOffline(clustertest.InGit(), clustertest.InGit(clustertest.ToVersion("3.6.16")), options)
	if err != nil || !strings.HasSuffix(r.Steps[0].Reason, "a verified backup must be taken first (store: s3://backups/{{ .UID }}.db)") {
		t.Errorf("%v %+v", err, r.Steps)
	}
	if r.Disruption != "3 restarts, one at a time, quorum kept; 1 to 2 leader moves" {
		t.Error(r.Disruption)
	}
	options.BackupURL = ""
	r, err = clusterOffline(clustertest.InGit(), clustertest.InGit(clustertest.ToVersion("3.6.16")), options)
	if err != nil || r.Hold == nil || !strings.Contains(r.Hold.Message, "no place for it is set") {
		t.Errorf("%v %+v", err, r.Hold)
	}
}

// 17 19: the same two files give the same report, whatever the order of a map.
func TestPlanOfflineIsStable(t *testing.T) {
	options := map[string]string{}
	for _, name := range strings.Fields("heartbeat-interval election-timeout snapshot-count max-txn-ops max-request-bytes") {
		options[name] = "100000"
	}
	var first string
	for range 20 {
		shuffled := map[string]string{}
		for name, value := range options {
			shuffled[name] = value
		}
		r, err := clusterOffline(clustertest.InGit(), clustertest.InGit(func(c *schema.EtcdCluster) { c.Spec.Etcd.Options = shuffled }), offlineOptions())
		if err != nil {
			t.Fatal(err)
		}
		report := Report{Clusters: []ClusterReport{r}}
		if text := report.Text(); first == "" {
			first = text
		} else if text != first {
			t.Fatalf("first\n%s\nthen\n%s", first, text)
		}
	}
	if !strings.Contains(first, "spec.etcd.options.election-timeout: (none) → 100000\n  spec.etcd.options.heartbeat-interval") {
		t.Error(first)
	}
}

// Backups, schedules and restores are listed as they differ; a document that is
// bad now is not taken for a removed one.
func TestCompareDocuments(t *testing.T) {
	seven, last := int32(7), int32(3)
	nightly := schema.Schedule{Origin: schema.Origin{File: "nightly.yaml"}}
	nightly.Metadata = schema.Metadata{Namespace: "shop", Name: "nightly"}
	nightly.Spec = schema.BackupScheduleSpec{
		Schedule: "0 2 * * *", TimeZone: "Europe/Berlin", Retention: schema.RetentionSpec{KeepDaily: seven},
		BackupTemplate: schema.BackupRequest{Source: schema.BackupSource{ClusterName: "orders"}},
	}
	longer := nightly
	longer.Spec.Retention, longer.Spec.Suspend = schema.RetentionSpec{KeepLast: &last, KeepDaily: 14, MaxAge: &metav1.Duration{Duration: 720 * time.Hour}}, true
	backup := schema.Backup{}
	backup.Metadata = schema.Metadata{Namespace: "shop", Name: "before"}
	backup.Spec = schema.BackupRequest{
		Source:      schema.BackupSource{ClusterURL: "https://etcd.example.com:2379"},
		Destination: schema.Destination{ObjectURLTemplate: "s3://b/{{ .UID }}.db?region=r"},
	}
	restore := schema.Restore{}
	restore.Metadata = schema.Metadata{Namespace: "shop", Name: "again"}
	restore.Spec = schema.RestoreSpec{
		Source: schema.RestoreSource{Schedule: "nightly", Before: &metav1.Time{Time: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}}, ClusterName: "orders2",
	}
	restore.Spec.ClusterTemplate.Version = "3.6.16"
	with := func(s ...schema.Schedule) schema.Set { return schema.Set{Schedules: s} }
	for name, test := range map[string]struct {
		before, after schema.Set
		want          []string
	}{
		"25 no change": {with(nightly), with(nightly), nil},
		"added":        {with(), with(nightly), []string{"EtcdBackupSchedule shop/nightly: added: 0 2 * * * Europe/Berlin, of orders, keeps 7 daily"}},
		"changed":      {with(nightly), with(longer), []string{"EtcdBackupSchedule shop/nightly: changed: 0 2 * * * Europe/Berlin, of orders, keeps 3 last and 14 daily, none older than 720h0m0s, suspended"}},
		"removed":      {with(nightly), with(), []string{"EtcdBackupSchedule shop/nightly: removed: 0 2 * * *"}},
		"held by name": {with(nightly), schema.Set{Held: []schema.Held{{Kind: schema.KindBackupSchedule, Namespace: "shop", Name: "nightly"}}}, nil},
		"held by file": {with(nightly), schema.Set{Held: []schema.Held{{Origin: schema.Origin{File: "nightly.yaml"}}}}, nil},
		"another held": {with(nightly), schema.Set{Held: []schema.Held{{Origin: schema.Origin{File: "other.yaml"}}}}, []string{"EtcdBackupSchedule shop/nightly: removed"}},
		"the others": {with(), schema.Set{Backups: []schema.Backup{backup}, Restores: []schema.Restore{restore}}, []string{
			"EtcdBackup shop/before: added: of https://etcd.example.com:2379 to s3://b/{{ .UID }}.db",
			"EtcdRestore shop/again: added: the newest backup of schedule nightly before 2026-11-20T08:00:00Z into orders2, etcd 3.6.16",
		}},
	} {
		got, err := CompareDocuments(test.before, test.after)
		if err != nil {
			t.Fatal(err)
		}
		same := slices.EqualFunc(got, test.want, func(o ObjectReport, want string) bool { return strings.HasPrefix(o.String(), want) })
		if !same {
			t.Errorf("%s: %v", name, got)
		}
	}
	if all := Documents(with(nightly)); len(all) != 1 || all[0].Change != "" || strings.Contains(all[0].String(), "added") || strings.Contains(all[0].String(), "suspended") {
		t.Errorf("%v", all)
	}
}

// What the other clusters and the record decide is said to be unknown.
func TestOfflinePlanNamesTheFleet(t *testing.T) {
	const owner = "https://git.example.com/old.git@main#default/1"
	late := func(c *schema.EtcdCluster) { c.Spec.Upgrade.Wave = 2 }
	taken := func(c *schema.EtcdCluster) { c.Spec.TakeOver = owner }
	for _, test := range []struct {
		name          string
		before, after *desired.Cluster
		want          string
	}{
		{"a roll of a later wave", clustertest.InGit(late), clustertest.InGit(late, clustertest.ToVersion("3.6.16")), "when wave 2 begins: every cluster of a lower wave must be what its file says before, and healthy, and its checks must hold"},
		{"a cluster that is taken over", clustertest.InGit(), clustertest.InGit(taken), "whether the cluster still belongs to " + owner},
		{"a file that comes from elsewhere", nil, clustertest.InGit(taken), "whether the cluster still belongs to " + owner},
		{"a later wave alone", clustertest.InGit(), clustertest.InGit(late), ""},
		{"a roll of the first wave", clustertest.InGit(), clustertest.InGit(clustertest.ToVersion("3.6.16")), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := clusterOffline(test.before, test.after, offlineOptions())
			if err != nil {
				t.Fatal(err)
			}
			told := strings.Join(r.Unknown, "\n")
			named := strings.Contains(told, "wave") || strings.Contains(told, "belongs")
			if named != (test.want != "") || !strings.Contains(told, test.want) {
				t.Errorf("unknown:\n%s", told)
			}
		})
	}
}
