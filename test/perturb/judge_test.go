package perturb

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/perturb/score"
)

// judge looks at the world after each move, and shares no code with quorate.
type judge struct {
	w     *world
	wrong []string
	// pods are the pods by name, and starts how often each was started since begin.
	pods   map[string]string
	starts map[string]int
	// data is the ID of the member whose data a claim has, by the claim's UID, and holds
	// the claim that has a member's data, by its ID.
	data, holds map[string]string
	// excused says that members may be down: the scenario itself stops them.
	excused bool
	// formed is true from when a quorum of the first members was up.
	formed bool
}

func newJudge(w *world) judge {
	return judge{w: w, pods: map[string]string{}, starts: map[string]int{}, data: map[string]string{}, holds: map[string]string{}}
}

func (j *judge) begin() { clear(j.starts) }

func (j *judge) add(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(j.wrong, text) {
		j.wrong = append(j.wrong, text)
	}
}

// look judges what is.
func (j *judge) look() {
	members, learners := j.w.Etcd.Listed()
	voters, up := 0, 0
	for _, name := range members {
		if learners[name] {
			continue
		}
		voters++
		if j.w.runs(name) != "" {
			up++
		}
	}
	j.formed = j.formed || up == voters
	if j.formed && !j.excused && voters > 1 { // the only member goes down with each restart
		if up < voters/2+1 {
			j.add("I1: %d of %d voters are up", up, voters)
		}
		if up < voters-1 {
			j.add("I2: %d of %d voters are down at once", voters-up, voters)
		}
	}
	j.lookAtPods(members)
}

func (j *judge) lookAtPods(members []string) {
	there := map[string]string{}
	for _, pod := range j.w.members() {
		there[pod.Name] = string(pod.UID)
		if j.pods[pod.Name] != string(pod.UID) {
			j.starts[pod.Name]++
			j.started(pod.Name, members)
		}
	}
	j.pods = there
}

// started judges the data that a member starts on.
func (j *judge) started(name string, members []string) {
	if !slices.Contains(members, name) || j.w.refusal(name) != 0 {
		return
	}
	id, claim := j.w.Etcd.MemberID(name), j.w.volume(name)
	switch had := j.holds[id]; {
	case had != "" && had != claim:
		j.add("I5: %s starts as %s on another volume than the one with its data", name, id)
	case j.data[claim] != "" && j.data[claim] != id:
		j.add("I5: %s starts as %s on the data of %s", name, id, j.data[claim])
	}
	j.data[claim], j.holds[id] = id, claim
}

// emptied forgets whose data the volume of a member had.
func (j *judge) emptied(name string) { delete(j.data, j.w.volume(name)) }

// stored are the resources that belong to the picture.
func stored() map[string]apischema.GroupVersionResource {
	core, apps, batch := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion
	return map[string]apischema.GroupVersionResource{
		"ConfigMap": core.WithResource("configmaps"), "Secret": core.WithResource("secrets"), "Service": core.WithResource("services"),
		"Pod": core.WithResource("pods"), "PersistentVolumeClaim": core.WithResource("persistentvolumeclaims"),
		"StatefulSet": apps.WithResource("statefulsets"), "Job": batch.WithResource("jobs"),
		"PodDisruptionBudget": policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"),
	}
}

// placeless is a line without the directory of the backups, nor the hash of what names it.
func (w *world) placeless(line string) string {
	if r := w.Wish.Restore; r != nil {
		line = strings.ReplaceAll(line, schema.SourceHash(r.Source), "…")
	}
	return strings.ReplaceAll(line, w.Backups, "…")
}

// picture is the world without what differs from one run to the next: UIDs, times,
// versions of objects, random names, and the bytes of Secrets.
func (w *world) picture() []string {
	var lines []string
	for kind, resource := range stored() {
		list, err := w.API.Tracker().List(resource, apischema.GroupVersionKind{Group: resource.Group, Version: resource.Version, Kind: kind}, "shop")
		if err != nil {
			w.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			w.Fatal(err)
		}
		for _, o := range items {
			if job, ok := o.(*batchv1.Job); ok && ended(*job) && job.Spec.TTLSecondsAfterFinished != nil {
				continue // it goes by itself
			}
			for _, line := range score.Lines(kind, o) {
				lines = append(lines, w.placeless(line))
			}
		}
	}
	members, learners := w.Etcd.Listed()
	for _, name := range members {
		lines = append(lines, fmt.Sprintf("etcd %s learner=%t version=%s", name, learners[name], w.runs(name)))
	}
	slices.Sort(lines)
	return lines
}
