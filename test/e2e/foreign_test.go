package e2e

import (
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/test/lab"
)

// TestForeignObjects declares clusters whose names are taken by foreign
// objects: these are not changed, and nothing is created next to them.
func TestForeignObjects(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "foreign")
	foreign := map[string]string{
		"set":     "StatefulSet set exists and is not quorate's",
		"service": "Service service-client exists and is not quorate's",
		"claim":   "PersistentVolumeClaim data-claim-0 exists and is not quorate's",
		"record":  "ConfigMap record-record exists and is not quorate's",
	}
	w.makeForeign()
	before := w.settled()
	files := map[string]string{}
	for name := range foreign {
		files["clusters/"+name+".yaml"] = w.text(spec{name: name, version: "3.6.16", replicas: 1})
	}
	w.commitFiles("Add clusters whose names are taken", files)
	w.start()
	for name, sentence := range maps.All(foreign) {
		w.mark = 0
		hold := w.await("34, 35: "+sentence, holdLimit, func(l lab.LogLine) bool {
			return l.Cluster == w.namespace+"/"+name && l.Kind == "Refused" && strings.Contains(l.Reason, sentence)
		})
		if hold.Remedy == "" {
			t.Errorf("it does not tell what to do: %s", hold.Raw)
		}
	}
	time.Sleep(quiet)
	w.expectObjects(before)
	if steps := w.lines(0, lab.Step()); len(steps) > 0 {
		t.Errorf("quorate acted: %s", steps[0].Raw)
	}
}

// makeForeign makes one object of each kind that can be in the way.
func (w *world) makeForeign() {
	w.Helper()
	client, options := w.cluster.Client, metav1.CreateOptions{}
	labels := map[string]string{"app": "foreign"}
	_, err := client.AppsV1().StatefulSets(w.namespace).Create(w.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "set"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}}},
			},
		},
	}, options)
	w.must(err)
	_, err = client.CoreV1().Services(w.namespace).Create(w.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "service-client"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, options)
	w.must(err)
	_, err = client.CoreV1().PersistentVolumeClaims(w.namespace).Create(w.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data-claim-0"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			// No class, so that no provisioner writes to it meanwhile.
			StorageClassName: new(string),
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("256Mi")}},
		},
	}, options)
	w.must(err)
	_, err = client.CoreV1().ConfigMaps(w.namespace).Create(w.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "record-record"}, Data: map[string]string{"some": "data"},
	}, options)
	w.must(err)
}
