package desired_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/desired/desiredtest"
)

// A restore declares the cluster that it makes, the same in every reading of one commit;
// where Git declares a cluster of that name as deleted it replaces that one.
func TestClustersOfRestores(t *testing.T) {
	deleted := strings.Replace(desiredtest.ClusterFile("again", "3.6.12"), "spec:\n", "spec:\n  state: Deleted\n", 1)
	for name, test := range map[string]struct {
		files   map[string]string
		want    []string
		inPlace bool
	}{
		"beside a cluster":      {map[string]string{"orders.yaml": desiredtest.ClusterFile("orders", "3.6.16"), "again.yaml": restoreFile}, []string{"shop/again 3.6.16", "shop/orders 3.6.16"}, false},
		"in a deleted one's":    {map[string]string{"old.yaml": deleted, "again.yaml": restoreFile}, []string{"shop/again 3.6.16"}, true},
		"118: of a living one":  {map[string]string{"old.yaml": desiredtest.ClusterFile("again", "3.6.12"), "again.yaml": restoreFile}, []string{"shop/again 3.6.12"}, false},
		"another name":          {map[string]string{"again.yaml": strings.Replace(restoreFile, "spec:\n", "spec:\n  clusterName: orders\n", 1)}, []string{"shop/orders 3.6.16"}, false},
		"one that is not right": {map[string]string{"again.yaml": strings.Replace(restoreFile, "3.6.16", "3.6", 1)}, []string{"shop/again held"}, false},
	} {
		set := desiredtest.Parse(test.files)
		before := desired.Clusters(set, "c0ffee", nil)
		if got := desiredtest.Summary(before); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, %v", name, got, set.Problems)
		}
		for i, c := range desired.Clusters(set, "c0ffee", nil) {
			if c.Restore == nil {
				continue
			}
			if !reflect.DeepEqual(c.Restore, before[i].Restore) || c.Restore.SpecHash == "" || (c.Restore.Former != nil) != test.inPlace || c.Restore.Name != "again" {
				t.Errorf("%s: %+v", name, c.Restore)
			}
		}
	}
}

// Where the backups are that a restore means: as its schedule says, else its cluster.
func TestWhereARestoreLooks(t *testing.T) {
	cluster := strings.Replace(desiredtest.ClusterFile("orders", "3.6.16"), "spec:\n", "spec:\n  backup: {destination: {objectURLTemplate: 's3://c/{{ .UID }}.db?region=eu'}}\n", 1)
	schedule := "apiVersion: quorate.dev/v1alpha1\nkind: EtcdBackupSchedule\nmetadata: {name: nightly, namespace: shop}\n" +
		"spec: {schedule: '0 2 * * *', backupTemplate: {source: {clusterName: orders}DEST}}\n"
	own := strings.Replace(schedule, "DEST", ", destination: {objectURLTemplate: 's3://s/{{ .UID }}.db?region=eu'}", 1)
	from := func(source string) string {
		return strings.Replace(restoreFile, `{objectURL: "s3://backups/orders.db?region=eu-west-1"}`, source, 1)
	}
	for name, c := range map[string]struct{ restore, schedule, want string }{
		"its schedule's":             {from("{schedule: nightly}"), own, "orders shop/nightly s3://s/{{ .UID }}.db?region=eu"},
		"its schedule's cluster's":   {from("{schedule: nightly}"), strings.Replace(schedule, "DEST", "", 1), "orders shop/nightly s3://c/{{ .UID }}.db?region=eu"},
		"its cluster's":              {from("{clusterName: orders}"), own, "orders  s3://c/{{ .UID }}.db?region=eu"},
		"a cluster's that is gone":   {from("{clusterName: users}"), own, "users  "},
		"nowhere, as it has its URL": {restoreFile, own, ""},
	} {
		set := desiredtest.Parse(map[string]string{"a.yaml": cluster, "b.yaml": c.schedule, "c.yaml": c.restore})
		got := ""
		for _, w := range desired.Clusters(set, "c0ffee", nil) {
			if w.Restore != nil && w.Restore.From != nil {
				got = w.Restore.From.Cluster + " " + w.Restore.From.Schedule + " " + w.Restore.From.Destination.ObjectURLTemplate
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q, %v", name, got, c.want, set.Problems)
		}
	}
}

// A restore whose document has errors holds the cluster that it makes, by whatever
// name that has.
func TestHeldRestoreHoldsItsCluster(t *testing.T) {
	good := map[string]string{"again.yaml": strings.Replace(restoreFile, "spec:\n", "spec:\n  clusterName: orders\n", 1)}
	before := desired.Origins(desiredtest.Parse(good), nil)
	bad := map[string]string{"again.yaml": strings.Replace(good["again.yaml"], "3.6.16", "3.6", 1)}
	if got := desiredtest.Summary(desired.Clusters(desiredtest.Parse(bad), "c", before)); !slices.Equal(got, []string{"shop/orders held"}) {
		t.Errorf("%q", got)
	}
	before = desired.Origins(desiredtest.Parse(bad), before)
	if got := desiredtest.Summary(desired.Clusters(desiredtest.Parse(map[string]string{"again.yaml": desiredtest.BrokenFile}), "c", before)); !slices.Equal(got, []string{"shop/orders held"}) {
		t.Errorf("%q", got)
	}
}

const restoreFile = `apiVersion: quorate.dev/v1alpha1
kind: EtcdRestore
metadata: {name: again, namespace: shop}
spec:
  source: {objectURL: "s3://backups/orders.db?region=eu-west-1"}
  clusterTemplate: {version: "3.6.16", replicas: 3, storage: {size: 8Gi}}
`
