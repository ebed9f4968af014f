package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// Happened is what Kubernetes still knows of what has happened to one cluster. The API
// server keeps an Event for an hour, unless it was told otherwise (--event-ttl).
type Happened struct {
	// Done are quorate's own Events, the newest first: each step that it began, each hold,
	// and what has failed.
	Done []Event `json:"done"`
	// Events are those of others about the cluster's StatefulSet, its members' pods and
	// claims, and its Jobs, the newest first.
	Events []Event `json:"events"`
	// Truncated is whether there are more than these.
	Truncated bool `json:"truncated"`
}

// Event is one Event of Kubernetes.
type Event struct {
	// Time is when it was last seen, in UTC, and Count how often it was.
	Time  string `json:"time"`
	Count int    `json:"count"`
	// Warning is whether its type is Warning.
	Warning bool `json:"warning"`
	// Reason is one word in CamelCase, Message a sentence for people.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Kind and Name are those of the object that it is about, and Source who wrote it.
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Source string `json:"source"`
}

const (
	// ownSource writes quorate's own Events.
	ownSource = "quorate"
	// eventsAge is how long one read of a namespace is shared, and eventsTime how long it
	// may take.
	eventsAge, eventsTime = 5 * time.Second, 3 * time.Second
	// eventsPage is how many Events one request asks for, and eventsPages how many requests
	// there are, of quorate's own Events and of others.
	eventsPage, eventsPages = 200, 10
	// eventsRate and eventsBurst bound the reads in a second, and at once: who opens many
	// pages must not starve the reconciler's own requests.
	eventsRate, eventsBurst = 1, 5
	// maxShown bounds what is shown of one cluster, and maxMessage the text of one Event,
	// in bytes.
	maxShown, maxMessage = 100, 1000
)

// errNoEvents and errManyEvents are answers without Events.
var (
	errNoEvents   = errors.New("this daemon reads no Events")
	errManyEvents = errors.New("the Events of too many namespaces are asked for at once; ask again in some seconds")
)

// Events reads the Events of Kubernetes for who asks. Nothing is watched, and one read of a
// namespace is shared for some seconds, as is its failure.
type Events struct {
	kube kubernetes.Interface
	ask  *rate.Limiter

	mu    sync.Mutex
	reads map[string]eventsRead
}

// eventsRead is one read of a namespace, under way or done.
type eventsRead struct {
	begun time.Time
	read  func() (Happened, error)
}

// NewEvents reads Events with a client.
func NewEvents(kube kubernetes.Interface) *Events {
	return &Events{kube: kube, ask: rate.NewLimiter(eventsRate, eventsBurst), reads: map[string]eventsRead{}}
}

// in returns what has happened in a namespace.
func (e *Events) in(namespace string) (Happened, error) {
	e.mu.Lock()
	maps.DeleteFunc(e.reads, func(_ string, r eventsRead) bool { return time.Since(r.begun) >= eventsAge })
	r, there := e.reads[namespace]
	if !there {
		if !e.ask.Allow() {
			e.mu.Unlock()
			return Happened{}, errManyEvents
		}
		r = eventsRead{time.Now(), sync.OnceValues(func() (Happened, error) { return e.read(namespace) })}
		e.reads[namespace] = r
	}
	e.mu.Unlock()
	return r.read()
}

// read asks the API server for the Events of a namespace. quorate's own come first: they
// are few, and must not be lost among those of others.
func (e *Events) read(namespace string) (h Happened, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), eventsTime)
	defer cancel()
	own, cut, err := e.list(ctx, namespace, "source="+ownSource)
	if err == nil {
		h.Done, h.Truncated = own, cut
		h.Events, cut, err = e.list(ctx, namespace, "source!="+ownSource)
		h.Truncated = h.Truncated || cut
	}
	switch {
	case err == nil:
		return h, nil
	case ctx.Err() != nil:
		return Happened{}, fmt.Errorf("read the Events of namespace %s: the API server has not answered within %s; ask again later", namespace, eventsTime)
	case apierrors.IsForbidden(err):
		return Happened{}, fmt.Errorf("read the Events of namespace %s: quorate may not; let it list events, as deploy/base/clusterrole.yaml does", namespace)
	}
	return Happened{}, fmt.Errorf("read the Events of namespace %s: %w; ask again later", namespace, err)
}

// list reads the Events that a field selector chooses. cut is whether there are more.
func (e *Events) list(ctx context.Context, namespace, selector string) (list []Event, cut bool, err error) {
	read := 0
	for page, err := range kube.Pages(ctx, e.kube.CoreV1().Events(namespace).List, metav1.ListOptions{FieldSelector: selector, Limit: eventsPage}) {
		if err != nil {
			return nil, false, err
		}
		for i := range page.Items {
			list = append(list, eventOf(&page.Items[i]))
		}
		if read++; read == eventsPages && page.Continue != "" {
			return list, true, nil
		}
	}
	return list, false, nil
}

// eventOf is what is shown of an Event. There are two ways to say when and how often.
func eventOf(e *corev1.Event) Event {
	at, count := e.LastTimestamp.Time, e.Count
	if at.IsZero() {
		at = e.EventTime.Time
	}
	if s := e.Series; s != nil {
		at, count = s.LastObservedTime.Time, s.Count
	}
	if at.IsZero() {
		at = e.CreationTimestamp.Time
	}
	message := e.Message
	if len(message) > maxMessage {
		message = message[:maxMessage] + "…"
	}
	return Event{
		Time: schema.TimeText(at), Count: int(max(count, 1)), Warning: e.Type == corev1.EventTypeWarning, Reason: e.Reason, Message: strings.ToValidUTF8(message, ""),
		Kind: e.InvolvedObject.Kind, Name: e.InvolvedObject.Name, Source: cmp.Or(e.Source.Component, e.ReportingController),
	}
}

// SetEvents has the feed show the Events of Kubernetes.
func (f *Feed) SetEvents(events *Events) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = events
}

// Happened returns what Kubernetes still knows of what has happened to a cluster, at most
// some seconds old. look tells the cluster's backups and schedules, whose Jobs count.
func (f *Feed) Happened(look Look, namespace, name string) (Happened, error) {
	f.mu.Lock()
	events := f.events
	f.mu.Unlock()
	if events == nil {
		return Happened{}, errNoEvents
	}
	all, err := events.in(namespace)
	if err != nil {
		return Happened{}, err
	}
	about := aboutCluster(look, namespace, name)
	h := Happened{Truncated: all.Truncated}
	var cut [2]bool
	h.Done, cut[0] = newest(all.Done, func(e Event) bool { return e.Source == ownSource && about(e) })
	h.Events, cut[1] = newest(all.Events, func(e Event) bool { return e.Source != ownSource && about(e) })
	h.Truncated = h.Truncated || cut[0] || cut[1]
	return h, nil
}

// newest are the newest of the Events that are chosen. cut is whether there are more.
func newest(all []Event, chosen func(Event) bool) (list []Event, cut bool) {
	list = []Event{}
	for _, e := range all {
		if chosen(e) {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b Event) int { return cmp.Compare(b.Time, a.Time) })
	return list[:min(len(list), maxShown)], len(list) > maxShown
}

// aboutCluster chooses the Events about the objects of one cluster, by their names.
func aboutCluster(look Look, namespace, name string) func(Event) bool {
	jobs := []string{name + "-recovery-", name + "-restore-"}
	for _, s := range look.List {
		o := s.Status
		own := o.Backup != nil && o.Backup.Cluster == namespace+"/"+name || o.Schedule != nil && o.Schedule.Cluster == namespace+"/"+name
		if own && s.Metadata.Namespace == namespace {
			begin := s.Metadata.Name[:min(40, len(s.Metadata.Name))] // as in jobs.NewName
			jobs = append(jobs, begin+"-backup-", begin+"-drill-")
		}
	}
	ofJob := func(object string) bool {
		return slices.ContainsFunc(jobs, func(prefix string) bool {
			rest, ok := strings.CutPrefix(object, prefix)
			return ok && isToken(rest)
		})
	}
	return func(e Event) bool {
		switch e.Kind {
		case "StatefulSet", schema.KindCluster:
			return e.Name == name
		case "ConfigMap":
			return e.Name == naming.Record(name)
		case "Pod":
			return naming.IsMember(name, e.Name) || ofJob(e.Name)
		case "PersistentVolumeClaim":
			return naming.MemberOfClaim(name, e.Name, "") != ""
		case "Job":
			return ofJob(e.Name)
		}
		return false
	}
}

// isToken reports whether the rest of a Job's name begins with a random number, as each of
// quorate's does: orders-restore-0 is a member of another cluster.
func isToken(rest string) bool {
	return len(rest) >= 8 && strings.Trim(rest[:8], "0123456789abcdef") == ""
}
