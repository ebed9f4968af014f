package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/schema"
)

// eventServer is an API server that has Events, and answers page by page.
type eventServer struct {
	kube *fake.Clientset
	list []corev1.Event
	err  error
}

func newEventServer() *eventServer {
	s := &eventServer{kube: fake.NewClientset()}
	s.kube.PrependReactor("list", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
		options := a.(clienttesting.ListActionImpl).ListOptions
		selector, err := fields.ParseSelector(options.FieldSelector)
		if err = errors.Join(err, s.err); err != nil {
			return true, nil, err
		}
		first, _ := strconv.Atoi(options.Continue)
		page := &corev1.EventList{}
		for i, e := range s.list {
			if i < first || !selector.Matches(fields.Set{"source": e.Source.Component}) {
				continue
			}
			if int64(len(page.Items)) == options.Limit {
				page.Continue = strconv.Itoa(i)
				break
			}
			page.Items = append(page.Items, e)
		}
		return true, page, nil
	})
	return s
}

// add adds an Event, each a second younger than the one before.
func (s *eventServer) add(source, kind, name, reason string) {
	s.list = append(s.list, corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}, Source: corev1.EventSource{Component: source}, Reason: reason, Message: "it is so",
		Type: corev1.EventTypeNormal, LastTimestamp: metav1.Unix(int64(len(s.list)), 0),
	})
}

// asked is how often it was asked.
func (s *eventServer) asked() int { return len(s.kube.Actions()) }

// ofOrders asks for the Events of the cluster orders, which has a schedule, as has another
// cluster.
func ofOrders(t *testing.T, events *Events) (get func() (int, string)) {
	t.Helper()
	w := &world{}
	nightly := schema.NewStatus(schema.KindBackupSchedule, "shop", "nightly", schema.PhaseReady, "Idle", "")
	nightly.Status.Schedule = &schema.ScheduleStatus{Cluster: "shop/orders"}
	other := schema.NewStatus(schema.KindBackupSchedule, "shop", "hourly", schema.PhaseReady, "Idle", "")
	other.Status.Schedule = &schema.ScheduleStatus{Cluster: "shop/users"}
	w.set(cmdtest.Ready("orders"), nightly, other)
	feed, fetch := serve(t, w)
	feed.SetEvents(events)
	return func() (int, string) {
		code, _, body := fetch(Prefix + "/statuses/EtcdCluster/shop/orders/events")
		return code, body
	}
}

// reasons are those of the Events in an answer.
func reasons(list []Event) string {
	var words []string
	for _, e := range list {
		words = append(words, e.Reason)
	}
	return strings.Join(words, " ")
}

// 246: the answer lists what quorate did to a cluster and the other Events about its
// objects, newest first, and none of another cluster, even with a similar name.
func TestEventsAreThoseOfOneCluster(t *testing.T) {
	s := newEventServer()
	for _, e := range []struct{ source, kind, name, reason string }{
		{"quorate", "ConfigMap", "orders-record", "First"},
		{"quorate", "StatefulSet", "orders", "Second"},
		{"quorate", "StatefulSet", "orders-1", "X"},
		{"quorate", "ConfigMap", "users-record", "X"},
		{"kubelet", "Pod", "orders-1", "Pod"},
		{"kubelet", "Pod", "orders-1-0", "X"},
		{"kubelet", "Pod", "orders-x", "X"},
		{"kubelet", "Pod", "orders-restore-0", "X"},
		{"pvc", "PersistentVolumeClaim", "data-orders-0", "Claim"},
		{"pvc", "PersistentVolumeClaim", "data-orders-1-0", "X"},
		{"job", "Job", "nightly-backup-0a1b2c3d", "Backup"},
		{"job", "Pod", "nightly-drill-0a1b2c3d-x7f2q", "Drill"},
		{"job", "Job", "hourly-backup-0a1b2c3d", "X"},
		{"job", "Job", "orders-recovery-0a1b2c3d-2", "Recovery"},
		{"sts", "StatefulSet", "orders", "Set"},
		{"x", "Service", "orders", "X"},
	} {
		s.add(e.source, e.kind, e.name, e.reason)
	}
	s.list[1].Type, s.list[1].Series = corev1.EventTypeWarning, &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(time.Unix(100, 0))}
	s.list[1].Message = strings.Repeat("é", maxMessage)
	get := ofOrders(t, NewEvents(s.kube))
	code, body := get()
	judge(t)(Prefix+"/statuses/EtcdCluster/{namespace}/{name}/events", code, "application/json", []byte(body))
	var got Happened
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if done, others := reasons(got.Done), reasons(got.Events); done != "Second First" || others != "Set Recovery Drill Backup Claim Pod" || got.Truncated {
		t.Errorf("%q and %q: %+v", done, others, got)
	}
	if e := got.Done[0]; !e.Warning || e.Count != 7 || e.Time != "1970-01-01T00:01:40Z" || len(e.Message) > maxMessage+3 || !strings.HasSuffix(e.Message, "é…") || e.Source != "quorate" {
		t.Errorf("the newest is %+v", e)
	}
	if e := got.Done[1]; e.Warning || e.Count != 1 || e.Kind != "ConfigMap" || e.Name != "orders-record" {
		t.Errorf("the oldest is %+v", e)
	}
}

// 247: a namespace with very many Events is read up to a limit, which the answer reports,
// and quorate's own Events are always included; concurrent and repeated requests share
// one read, and the number of reads for many namespaces is limited.
func TestEventsAreReadWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEventServer()
		for range eventsPage*eventsPages + 1 {
			s.add("kubelet", "Pod", "orders-0", "Killing")
		}
		s.add("quorate", "StatefulSet", "orders", "RestartMember")
		events := NewEvents(s.kube)
		get := ofOrders(t, events)
		for range 10 {
			code, body := get()
			var got Happened
			if err := json.Unmarshal([]byte(body), &got); err != nil || code != http.StatusOK {
				t.Fatal(code, err)
			}
			if len(got.Events) != maxShown || reasons(got.Done) != "RestartMember" || !got.Truncated {
				t.Errorf("%d, %q, truncated %t", len(got.Events), reasons(got.Done), got.Truncated)
			}
		}
		if n := s.asked(); n != 1+eventsPages {
			t.Errorf("asked %d times", n)
		}
		time.Sleep(eventsAge)
		s.list = nil
		if _, body := get(); body != `{"done":[],"events":[],"truncated":false}`+"\n" || s.asked() != 3+eventsPages {
			t.Errorf("asked %d times: %s", s.asked(), body)
		}
		busy := 0
		for i := range 100 {
			if _, err := events.in(fmt.Sprintf("team-%d", i)); errors.Is(err, errManyEvents) {
				busy++
			}
		}
		if busy < 100-eventsBurst {
			t.Errorf("%d of 100 namespaces were refused", busy)
		}
		time.Sleep(time.Minute)
		if _, err := events.in("shop"); err != nil || len(events.reads) != 1 {
			t.Errorf("after a while: %v, %d reads are kept", err, len(events.reads))
		}
	})
}

// 247: after a refusal the API server is not asked again for some seconds.
func TestARefusalOfEventsIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEventServer()
		for _, c := range []struct {
			err  error
			want string
		}{
			{apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no")), "read the Events of namespace shop: quorate may not; let it list events"},
			{errors.New("boom"), "read the Events of namespace shop: boom; ask again later"},
		} {
			s.err = c.err
			s.kube.ClearActions()
			get := ofOrders(t, NewEvents(s.kube))
			for range 3 {
				if code, body := get(); code != http.StatusServiceUnavailable || !strings.Contains(body, c.want) {
					t.Errorf("%d %s, want %s", code, body, c.want)
				}
			}
			if s.asked() != 1 {
				t.Errorf("asked %d times", s.asked())
			}
		}
	})
}

// 247: a request ends after a few seconds when the API server does not answer.
func TestAnAPIServerThatHangsGivesNoEvents(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(server.Close)
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	get := ofOrders(t, NewEvents(kube))
	if code, body := get(); code != http.StatusServiceUnavailable || !strings.Contains(body, "the API server has not answered within 3s") {
		t.Errorf("%d %s", code, body)
	}
}

func TestADaemonWithoutEventsSaysSo(t *testing.T) {
	get := ofOrders(t, nil)
	if code, body := get(); code != http.StatusServiceUnavailable || !strings.Contains(body, errNoEvents.Error()) {
		t.Errorf("%d %s", code, body)
	}
}
