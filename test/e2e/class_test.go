package e2e

import (
	"context"
	"maps"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// otherClass is a storage class besides the one that the cluster came with.
const otherClass = "e2e-other"

// TestStorageClassChange moves a cluster to volumes of another class, while clients
// write: only when Git says how, and by one new member after the other (5).
func TestStorageClassChange(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "class")
	want := spec{version: "3.6.16", replicas: 3, backup: "Required", more: soonRepaired}
	w.create(want)
	w.makeClass()
	history, sizes, before := w.recordHistory("history/"), w.watchMembers(), w.record()

	of := func(more string) string {
		return strings.Replace(w.text(want), "size: 256Mi\n", "size: 256Mi\n    storageClassName: "+otherClass+"\n"+more, 1)
	}
	w.commitText("Ask for another class", of(""))
	w.awaitHold("Refused", holdLimit, "spec.storage.storageClassName", "classChange")
	w.expectNothingDone(w.mark, before.Members)

	w.commitText("Say how", of("    classChange: Replace\n"))
	w.awaitDone(2 * changeLimit)
	w.expectSizes(sizes, "3", "2", "2+1", "3", "2", "2+1", "3", "2", "2+1", "3")
	claims, err := w.cluster.Client.CoreV1().PersistentVolumeClaims(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: clusterSelector})
	w.must(err)
	for _, c := range claims.Items {
		if *c.Spec.StorageClassName != otherClass {
			t.Errorf("%s is of class %s", c.Name, *c.Spec.StorageClassName)
		}
	}
	after := w.record()
	for member, id := range after.Members {
		if before.Members[member] == id || after.ClusterID != before.ClusterID {
			t.Errorf("%s was %s of cluster %s and is %s of %s", member, before.Members[member], before.ClusterID, id, after.ClusterID)
		}
	}
	w.expectVersion(3, want.version)
	w.expectRecord(3)
	w.checkHistory(history)
	w.expectProgress(history)
}

// A class that makes no volume takes no member's volume away: one that does not exist, one whose volumes people make and
// have not made, and one of which nobody makes any. The revert is honoured at once.
func TestAClassThatMakesNoVolumesTakesNone(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "no-class")
	w.needsClusterScoped()
	want := spec{version: "3.6.16", replicas: 3, backup: "Required"}
	w.create(want)
	before, members := w.uids(), w.record().Members
	of := func(class string) string {
		return strings.Replace(w.text(want), "size: 256Mi\n", "size: 256Mi\n    storageClassName: "+class+"\n    classChange: Replace\n", 1)
	}
	for _, c := range []struct{ class, provisioner, kind, says string }{
		{"e2e-typo", "", "Refused", "StorageClass e2e-typo does not exist"},
		{"e2e-by-hand", "kubernetes.io/no-provisioner", "Refused", "0 of the 3 PersistentVolumes that its members need are available"},
		{"e2e-nobody", "nobody.example.com", "Waiting", "a trial volume of class e2e-nobody is being made"},
	} {
		if c.provisioner != "" {
			w.makeClassBy(c.class, c.provisioner)
		}
		w.commitText("Ask for class "+c.class, of(c.class))
		w.awaitHold(c.kind, holdLimit, c.says)
		w.commitText("Take that back", w.text(want))
		w.awaitDone(changeLimit)
	}
	w.expectVersion(3, want.version)
	if after := w.uids(); !maps.Equal(before, after) || !maps.Equal(members, w.record().Members) {
		t.Errorf("the pods were %v and are %v, the members %v and %v", before, after, members, w.record().Members)
	}
}

// makeClassBy makes a class of a provisioner, for the test.
func (w *world) makeClassBy(name, provisioner string) {
	w.Helper()
	classes := w.cluster.Client.StorageV1().StorageClasses()
	_ = classes.Delete(w.Context(), name, metav1.DeleteOptions{}) // of a run that was cut off
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner}
	_, err := classes.Create(w.Context(), class, metav1.CreateOptions{})
	w.must(err)
	w.Cleanup(func() {
		if err := classes.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			w.Error(err)
		}
	})
}

// makeClass makes a copy of the class that the cluster's volumes have.
func (w *world) makeClass() {
	w.Helper()
	claim, err := w.cluster.Client.CoreV1().PersistentVolumeClaims(w.namespace).Get(w.Context(), "data-orders-0", metav1.GetOptions{})
	w.must(err)
	classes := w.cluster.Client.StorageV1().StorageClasses()
	class, err := classes.Get(w.Context(), *claim.Spec.StorageClassName, metav1.GetOptions{})
	w.must(err)
	class.ObjectMeta = metav1.ObjectMeta{Name: otherClass}
	_ = classes.Delete(w.Context(), otherClass, metav1.DeleteOptions{}) // of a run that was cut off
	_, err = classes.Create(w.Context(), class, metav1.CreateOptions{})
	w.must(err)
	w.Cleanup(func() {
		if err := classes.Delete(context.Background(), otherClass, metav1.DeleteOptions{}); err != nil {
			w.Error(err)
		}
	})
}
