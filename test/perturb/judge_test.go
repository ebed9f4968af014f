package perturb

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
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
	if j.formed && !j.excused {
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
	if !slices.Contains(members, name) {
		return
	}
	id, claim := j.w.Etcd.MemberID(name), ""
	for _, c := range j.w.Claims() {
		if c.Name == "data-"+name {
			claim = string(c.UID)
		}
	}
	switch had := j.holds[id]; {
	case had != "" && had != claim:
		j.add("I5: %s starts as %s on another volume than the one with its data", name, id)
	case j.data[claim] != "" && j.data[claim] != id:
		j.add("I5: %s starts as %s on the data of %s", name, id, j.data[claim])
	}
	j.data[claim], j.holds[id] = id, claim
}

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
			for _, line := range flat(kind, o) {
				lines = append(lines, strings.ReplaceAll(line, w.Backups, "…"))
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

// flat is an object as lines, each with the path of a value.
func flat(kind string, o runtime.Object) (lines []string) {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		panic(err)
	}
	m, err := meta.Accessor(o)
	if err != nil {
		panic(err)
	}
	delete(fields, "apiVersion") // an object that was updated has them here, others have not
	delete(fields, "kind")
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		delete(fields["metadata"].(map[string]any), field)
	}
	if status, ok := fields["status"].(map[string]any); ok {
		delete(status, "observedGeneration")
	}
	walk(kind+" "+plainName(m.GetName()), fields, &lines)
	return lines
}

func walk(path string, v any, lines *[]string) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			walk(path+"."+key, value, lines)
		}
	case []any:
		for i, value := range v {
			walk(fmt.Sprintf("%s[%d]", path, i), value, lines)
		}
	case string:
		if strings.HasPrefix(path, "Secret ") && strings.Contains(path, ".data.") {
			v = "…"
		}
		var inner any
		if strings.HasPrefix(v, "{") && json.Unmarshal([]byte(v), &inner) == nil ||
			strings.HasSuffix(path, ".yaml") && yaml.Unmarshal([]byte(v), &inner) == nil {
			walk(path, inner, lines)
			return
		}
		for _, line := range strings.Split(plainName(v), "\n") {
			*lines = append(*lines, path+" = "+line)
		}
	default:
		if strings.HasSuffix(path, ".record.json.revision") {
			return // counts the changes of the record
		}
		if strings.HasSuffix(path, ".seconds") {
			return // how long a backup took
		}
		*lines = append(*lines, fmt.Sprintf("%s = %v", path, v))
	}
}

// varying is what differs from one run to the next.
var varying = []*regexp.Regexp{
	regexp.MustCompile(`uid-\d+`),
	regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`),
	regexp.MustCompile(`\b[0-9a-f]{16,64}\b`),
	regexp.MustCompile(`\d{8}T?\d{6}Z?(-[0-9a-z]+)?`),
}

// plainName is a text without what differs from one run to the next.
func plainName(s string) string {
	for _, v := range varying {
		s = v.ReplaceAllString(s, "…")
	}
	return s
}
