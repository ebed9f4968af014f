package perturb

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/perturb/score"
)

// change is one change of a spec, which can be taken back.
type change struct {
	name string
	edit func(*schema.EtcdCluster)
}

func changes() []change {
	pod := func(edit func(*schema.PodSpec)) func(*schema.EtcdCluster) {
		return func(c *schema.EtcdCluster) { edit(&c.Spec.PodTemplate.Spec) }
	}
	return []change{
		{"none", func(*schema.EtcdCluster) {}},
		{"version", clustertest.SetVersion("3.6.12")},
		{"replicas-1", clustertest.SetReplicas(1)},
		{"replicas-5", clustertest.SetReplicas(5)},
		{"labels", func(c *schema.EtcdCluster) { c.Metadata.Labels = map[string]string{"team": "checkout"} }},
		{"annotations", func(c *schema.EtcdCluster) {
			c.Metadata.Annotations = map[string]string{"example.com/owner": "checkout"}
		}},
		{"image-repository", func(c *schema.EtcdCluster) { c.Spec.Image.Repository = "registry:5000/mirror/etcd" }},
		{"image-digest", func(c *schema.EtcdCluster) { c.Spec.Image.Digest = "sha256:" + strings.Repeat("0a", 32) }},
		{"options", roll},
		{"quota", func(c *schema.EtcdCluster) { c.Spec.Etcd.QuotaBackendBytes = new(resource.MustParse("4Gi")) }},
		{"compaction", func(c *schema.EtcdCluster) {
			c.Spec.Etcd.AutoCompaction = schema.AutoCompaction{Mode: "revision", Retention: "1000"}
		}},
		{"pod-labels", func(c *schema.EtcdCluster) {
			c.Spec.PodTemplate.Metadata.Labels = map[string]string{"cost-centre": "42"}
		}},
		{"pod-annotations", func(c *schema.EtcdCluster) {
			c.Spec.PodTemplate.Metadata.Annotations = map[string]string{"example.com/scrape": "true"}
		}},
		{"resources", pod(func(s *schema.PodSpec) {
			s.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
		})},
		{"node-selector", pod(func(s *schema.PodSpec) { s.NodeSelector = map[string]string{"kubernetes.io/arch": "amd64"} })},
		{"tolerations", pod(func(s *schema.PodSpec) {
			s.Tolerations = []corev1.Toleration{{Key: "etcd", Operator: corev1.TolerationOpExists}}
		})},
		{"priority", pod(func(s *schema.PodSpec) { s.PriorityClassName = "databases" })},
		{"pull-secrets", pod(func(s *schema.PodSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "mirror"}} })},
		{"security", pod(func(s *schema.PodSpec) { s.SecurityContext = &corev1.PodSecurityContext{FSGroup: new(int64(2000))} })},
		{"hibernated", func(c *schema.EtcdCluster) { c.Spec.State = schema.StateHibernated }},
	}
}

// 325: from each of these specs to each other the cluster ends as one made with the other
// does, and going back it ends where it was.
func TestEachPairOfChangesEndsAsAFreshCluster(t *testing.T) {
	list, f := changes(), &pairs{all: len(changes()) * (len(changes()) - 1) / 2}
	publish(t, "Pairs of changes", f.String, func(title string) error { return score.Write(*page, title, f.String()) })
	ends := map[string][]string{}
	fresh := func(t *testing.T, c change) []string {
		if ends[c.name] == nil {
			o := play(t, scenario{name: c.name, created: true, edits: edits(c.edit), then: (*world).start}, disturbance{})
			if o.hold != "" {
				t.Fatalf("made with %s it ends with %s", c.name, o.hold)
			}
			ends[c.name] = plainTemplate(o.end)
		}
		return ends[c.name]
	}
	for i, from := range list {
		for _, to := range list[i+1:] {
			name := from.name + "-and-" + to.name
			if !chosen("pairs/"+name) && !named(1) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				wantFrom, wantTo := fresh(t, from), fresh(t, to)
				there, back := thereAndBack(t, from, to)
				f.add(judged(t, "there", there, wantTo), judged(t, "back", back, wantFrom))
			})
		}
	}
}

// pairs counts the pairs that were tried of all, and those that ended as wanted.
type pairs struct{ all, tried, there, back int }

func (p *pairs) add(there, back bool) {
	p.tried++
	if there {
		p.there++
	}
	if back {
		p.back++
	}
}

func (p *pairs) String() string {
	return fmt.Sprintf("From one spec to another, and back: %d pairs of %d specs, %d tried. %d end as a cluster made with the second spec, %d come back to the first.",
		p.all, len(changes()), p.tried, p.there, p.back)
}

// thereAndBack plays from a spec to another, and back.
func thereAndBack(t *testing.T, from, to change) (there, back outcome) {
	t.Helper()
	becomes := func(c change) func(*world) {
		return func(w *world) {
			w.judge.excused = w.judge.excused || from.name == "hibernated" || to.name == "hibernated"
			w.commit(func(live *schema.EtcdCluster) {
				next := clustertest.Orders(c.edit)
				schema.Default(&next)
				*live = next
			})
		}
	}
	back = play(t, scenario{edits: edits(from.edit), before: func(w *world) {
		becomes(to)(w)
		w.rest()
		there = w.outcome()
		there.hold, there.wayOn = w.hold()
	}, then: becomes(from)}, disturbance{})
	return there, back
}

// judged reports whether a run ended as wanted.
func judged(t *testing.T, where string, o outcome, want []string) bool {
	t.Helper()
	d := score.Differ(want, plainTemplate(o.end))
	for _, w := range o.wrong {
		t.Errorf("%s: %s", where, w)
	}
	if o.hold != "" {
		t.Errorf("%s it ends with %s", where, o.hold)
	}
	if d != "" {
		t.Errorf("%s it ends another way than a fresh cluster (-) does:\n%s", where, d)
	}
	good := len(o.wrong) == 0 && o.hold == "" && d == ""
	if !good && *showLog {
		t.Log(o.log)
	}
	return good
}

// plainTemplate leaves out what tells of a cluster's past, which a fresh one has not: what
// is said of it, its record, the commit, the volumes of members that hibernate or have
// left, and the labels with which Secrets were made. A cluster that hibernates keeps its
// template and its members until it wakes.
func plainTemplate(end []string) []string {
	asleep := slices.ContainsFunc(end, func(line string) bool { return strings.HasSuffix(line, "StatefulSet orders.spec.replicas = 0") })
	return slices.DeleteFunc(slices.Clone(end), func(line string) bool {
		return asleep && (strings.HasPrefix(line, "StatefulSet orders.spec.template.") || strings.HasPrefix(line, "etcd ")) ||
			strings.HasPrefix(line, "Secret ") && strings.Contains(line, ".metadata.labels.") || strings.Contains(line, naming.LabelCommit) ||
			strings.HasPrefix(line, "ConfigMap ") || strings.HasPrefix(line, "PersistentVolumeClaim ") ||
			strings.Contains(line, ".status.") || strings.Contains(line, appsv1.StatefulSetRevisionLabel)
	})
}
