package live

import (
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// note is a ConfigMap.
func note(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// through is a process whose first note is disturbed, in a namespace of its own.
func through(t *testing.T, how string) (*process, kubernetes.Interface) {
	t.Helper()
	namespace := "proxy-" + how
	if _, err := api.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := newProcess(&counter{at: "POST-configmaps-note-1", how: how, counted: map[string]int{}, on: true}, namespace)
	client, err := p.client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.kill(); p.close() })
	return p, client
}

// A write that is not answered is done, and a process that was killed by it asks nothing more.
func TestADisturbedWriteIsDone(t *testing.T) {
	for _, how := range []string{answered, killed} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p, client := through(t, how)
			maps := client.CoreV1().ConfigMaps(p.namespace)
			_, err := maps.Create(t.Context(), note("note"), metav1.CreateOptions{})
			if err == nil || apierrors.IsInternalError(err) != (how == answered) {
				t.Errorf("it is answered with %v", err)
			}
			if _, err := api.kube.CoreV1().ConfigMaps(p.namespace).Get(t.Context(), "note", metav1.GetOptions{}); err != nil {
				t.Errorf("it was not done: %v", err)
			}
			if _, err := maps.Create(t.Context(), note("other"), metav1.CreateOptions{}); (err != nil) != (how == killed) || (p.alive() != nil) != (how == killed) {
				t.Errorf("the next is answered with %v", err)
			}
			names, hit, _ := p.seen()
			if hit.IsZero() || names[0] != "POST-configmaps-note-1" {
				t.Errorf("it counts %v", names)
			}
		})
	}
}

// The event of a write comes after that of the next one, or never. A watch of all namespaces is
// one of the process's own.
func TestTheEventOfADisturbedWriteIsLate(t *testing.T) {
	for how, want := range map[string][]string{heldBack: {"other", "note", "note changed"}, unseen: {"other", "note changed"}} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p, client := through(t, how)
			events, err := client.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer events.Stop()
			maps := client.CoreV1().ConfigMaps(p.namespace)
			for _, name := range []string{"note", "other"} {
				if _, err := maps.Create(t.Context(), note(name), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			changed := note("note")
			changed.Labels = map[string]string{"as": "changed"}
			if _, err := maps.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, name := range want {
				o, ok := (<-events.ResultChan()).Object.(*corev1.ConfigMap)
				if !ok || strings.TrimSpace(o.Name+" "+o.Labels["as"]) != name {
					t.Fatalf("it tells of %+v, want %s", o, name)
				}
			}
		})
	}
}

// What is older than the write, or of another object, is told at once; the rest waits, in its order.
func TestWatchesKeepOnlyWhatFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		h := &held{}
		w := h.watch(t.Context(), "configmaps", from)
		var got []string
		go func() {
			text, _ := io.ReadAll(w)
			got = strings.Fields(string(text))
		}()
		line := func(name, version string) string {
			return `{"object":{"metadata":{"name":"` + name + `","resourceVersion":"` + version + `"}}}`
		}
		tell := func(lines ...string) {
			for _, l := range lines {
				if _, err := io.WriteString(to, l+"\n"); err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
		}
		h.hold("configmaps/a")
		tell(line("a", "5"), line("b", "6"), line("a", "7"))
		h.since("configmaps/a", 7)
		time.Sleep(time.Second)
		tell(line("b", "8"), line("a", "9"))
		time.Sleep(heldFor)
		tell(line("a", "10"))
		_ = to.Close()
		synctest.Wait()
		want := []string{line("b", "6"), line("a", "5"), line("b", "8"), line("a", "7"), line("a", "9"), line("a", "10")}
		if !slices.Equal(got, want) {
			t.Errorf("it tells\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
