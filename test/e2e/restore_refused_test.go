package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/lab"
)

// TestRestoreIsRefused asks for restores that cannot go well, or that would go over
// something that exists: nothing is created, and nothing that exists is changed.
func TestRestoreIsRefused(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "refused")
	w.create(spec{version: "3.5.35", replicas: 1})
	client, err := w.cluster.Dial(t.Context(), w.namespace, name)
	w.must(err)
	defer func() { _ = client.Close() }()
	_, err = client.Put(t.Context(), "precious", "1")
	w.must(err)
	w.must(shared.store.UseCredentials())
	stored := func(key string, m backup.Manifest) string {
		return storeBackup(t, client, shared.store.ObjectURL(w.namespace+"/"+key), m)
	}
	good := stored("good.db", backup.Manifest{})
	truncated, flipped := stored("truncated.db", backup.Manifest{}), stored("flipped.db", backup.Manifest{})
	w.damageObject("truncated.db", func(text []byte) []byte { return text[:len(text)-4096] })
	w.damageObject("flipped.db", func(text []byte) []byte { text[len(text)/2] ^= 1; return text })
	w.claimLeftBehind("data-leftover-0", "leftover")
	before := w.settled()

	for _, tc := range []struct {
		name, cluster, source, version string
		says                           []string
	}{
		{"118: a cluster that runs", name, good, "3.5.35", []string{"touches nothing that exists", "StatefulSet orders", "pod orders-0"}},
		{"119: a volume claim that was left behind", "leftover", good, "3.5.35", []string{"data-leftover-0"}},
		{"120: no such backup", "fresh", strings.Replace(good, "good.db", "nowhere.db", 1), "3.5.35", []string{"nowhere.db"}},
		{"120: a truncated backup", "fresh", truncated, "3.5.35", []string{"truncated.db"}},
		{"120: a backup with one wrong bit", "fresh", flipped, "3.5.35", []string{"flipped.db"}},
		{"127: a backup of a later minor", "fresh", good, "3.4.34", []string{"cannot start on that", "spec.clusterTemplate.version"}},
		{"127: a backup that is two minors older", "fresh", good, "3.7.3", []string{"cannot start on that", "spec.clusterTemplate.version"}},
	} {
		ok := t.Run(tc.name, func(t *testing.T) {
			v := *w
			v.T = t
			text := v.restoreFile(fmt.Sprintf("{objectURL: %q}", desired.WithoutQuery(tc.source)), spec{version: tc.version, replicas: 1})
			text = strings.Replace(text, "clusterName: orders", "clusterName: "+tc.cluster, 1)
			// The cluster's own file is removed, as a person might try after this hold.
			v.commitFiles("Restore", map[string]string{file: "", "clusters/restore.yaml": text})
			said := v.await(fmt.Sprintf("a refusal that says %q", tc.says), holdLimit, func(l lab.LogLine) bool {
				refused := l.Cluster == v.namespace+"/"+tc.cluster && (l.Kind == "Refused" || l.Error != "")
				return refused && !slices.ContainsFunc(tc.says, func(part string) bool { return !strings.Contains(l.Hold(), part) })
			})
			t.Logf("quorate says: %s", said.Hold())
			time.Sleep(quiet)
			v.expectObjects(before)
		})
		if !ok {
			return // what was made by mistake would block the next one
		}
	}
	if answer, err := client.Get(t.Context(), "precious"); err != nil || len(answer.Kvs) != 1 {
		t.Errorf("the key reads %v, %v", answer, err)
	}
}

// damageObject changes an object of the test on the store's disk.
func (w *world) damageObject(key string, change func([]byte) []byte) {
	w.Helper()
	path := shared.store.ObjectPath(w.namespace + "/" + key)
	text, err := os.ReadFile(path)
	w.must(err)
	w.must(os.WriteFile(path, change(text), 0o644))
}

// claimLeftBehind makes a volume claim as one of a cluster that is gone.
func (w *world) claimLeftBehind(claim, cluster string) {
	w.Helper()
	_, err := w.cluster.Client.CoreV1().PersistentVolumeClaims(w.namespace).Create(w.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claim, Labels: naming.OwnLabels(named(w.namespace, cluster))},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: new(string),
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("256Mi")}},
		},
	}, metav1.CreateOptions{})
	w.must(err)
}

// named is a cluster that has nothing but its name.
func named(namespace, name string) schema.EtcdCluster {
	return schema.EtcdCluster{Metadata: schema.Metadata{Namespace: namespace, Name: name}}
}
