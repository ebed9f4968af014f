package statuses

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/contain"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/memo"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// The bounds of what is written: at rest nothing is, whatever the number of objects.
const (
	// Every is the time between two rounds. One that finds that nothing has changed
	// since the last asks nobody.
	Every = 2 * time.Second
	// MaxWrites is how many writes one round makes; the others are left for the next,
	// and the ones that have waited longest come first.
	MaxWrites = 40
	// MinPause is the shortest time between two writes of one object, and MaxPause the
	// longest between two that fail.
	MinPause = 10 * time.Second
	MaxPause = 5 * time.Minute
	// CheckEvery is how often what is there is listed, to mend what others have changed.
	CheckEvery = 10 * time.Minute
	// GoneAfter is how long an object must be out of Git before its status goes, too: a
	// commit that is being taken in says nothing yet.
	GoneAfter = time.Minute
	// maxFailures ends a round: the API server has something against them all.
	maxFailures = 3
	// pageSize is how many ConfigMaps one request lists.
	pageSize = 500
)

// Source is what the statuses are taken from.
type Source interface {
	// Statuses are those of all objects; whole is false while some are unknown.
	Statuses() (list []schema.Status, whole bool)
	// StatusRevision is another number after each change of Statuses, or of a MarkedSet.
	StatusRevision() uint64
	// MarkedSet is the StatefulSet of a cluster; nil for none that is quorate's. tell
	// reports whether it may be labelled. If not, the labels of before, which nobody keeps
	// true any more, are taken off.
	MarkedSet(namespace, name string) (set *appsv1.StatefulSet, tell bool)
	// Elsewhere reports whether another process tells of an object that Statuses leaves out.
	Elsewhere(s schema.Status) bool
	// Shards is another number after each shard that this process has taken: another one has
	// written about its clusters.
	Shards() uint64
	// Written is told when all that Statuses has returned last is written, but for what has no namespace.
	Written()
}

// Writer writes what a Source knows. It is for one goroutine.
type Writer struct {
	Kube kubernetes.Interface
	// Namespaces are those that may be read; none for all.
	Namespaces kube.Namespaces
	// By is which quorate writes, as ByOf makes it.
	By string
	// Lease is asked before each round, and Enter before each write about a cluster, by
	// namespace/name, which leave ends. Default of Enter: Lease.
	Lease func() error
	Enter func(ctx context.Context, cluster string) (leave func(), err error)
	Now   func() time.Time
	Log   *slog.Logger

	revision, shards uint64
	// pending reports whether the last round has left something to write.
	pending bool
	checked time.Time
	// failed counts the rounds that failed since one that wrote, and paused is until when there is none.
	failed int
	paused time.Time
	// there are the ConfigMaps, by namespace and name, and maps and sets are when the
	// ConfigMaps and the StatefulSets of objects were written last.
	there      map[string]*entry
	maps, sets map[string]pace
	said       memo.Once
}

// pace is when something was written last, and how often that has failed in a row.
type pace struct {
	last   time.Time
	failed int
}

// next is when it may be written again.
func (p pace) next() time.Time { return p.last.Add(min(MinPause<<p.failed, MaxPause)) }

// note is the pace after one more write.
func (p pace) note(now time.Time, done bool) pace {
	if done {
		return pace{last: now}
	}
	return pace{last: now, failed: min(p.failed+1, 10)}
}

// entry is one ConfigMap.
type entry struct {
	uid     types.UID
	version string
	// foreign is one that is somebody else's.
	foreign bool
	status  schema.Status // without times
	times   []schema.Condition
	// gone is since when its object is out of Git.
	gone time.Time
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context, from Source) {
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := w.Round(ctx, from); err != nil && ctx.Err() == nil && w.said.Changed("statuses", "failure", err.Error()) {
			w.Log.Warn("statuses are not written to Kubernetes, will retry", "error", err.Error())
		}
	}
}

// Round writes what has changed since the last one, within the bounds. After one that
// failed, the next ones come later and later.
func (w *Writer) Round(ctx context.Context, from Source) error {
	now := w.Now()
	if now.Before(w.paused) {
		return nil
	}
	err := contain.Run(func() error { return w.round(ctx, from, now) })
	if err != nil {
		w.paused = now.Add(min(Every<<w.failed, MaxPause))
		w.failed = min(w.failed+1, 10)
	}
	return err
}

func (w *Writer) round(ctx context.Context, from Source, now time.Time) error {
	revision, shards := from.StatusRevision(), from.Shards()
	check := now.Sub(w.checked) >= CheckEvery || shards != w.shards
	if revision == w.revision && !w.pending && !check {
		return nil
	}
	if err := w.Lease(); err != nil {
		return err
	}
	w.pending = true // until this round comes to its end
	if check {
		if err := w.list(ctx); err != nil {
			return err
		}
		w.checked, w.shards = now, shards
	}
	list, whole := from.Statuses()
	due, waiting := w.due(list, from, whole, now)
	slices.SortStableFunc(due, func(a, b write) int { return a.last.Compare(b.last) })
	w.revision = revision
	written, err := w.make(ctx, due[:min(len(due), MaxWrites)])
	w.pending = waiting || written < len(due)
	if !w.pending {
		from.Written()
	}
	return err
}

// make makes the writes, and returns how many were made. What fails does not keep the others from theirs, nor does a cluster that
// is refused: to be refused costs no request, and is not counted as a failure of the API server.
func (w *Writer) make(ctx context.Context, due []write) (written int, err error) {
	var failures []error
	var refused error // the last one: where the lease is lost, all say the same
	for _, d := range due {
		leave, err := w.enter(ctx, d.cluster)
		if err != nil {
			refused = err
			continue
		}
		done, err := d.do(ctx)
		leave()
		if done {
			written++
		}
		if err != nil {
			failures = append(failures, err)
		}
		if len(failures) == maxFailures {
			break
		}
	}
	err = errors.Join(append(failures, refused)...)
	if len(due) > 0 && err == nil {
		w.failed = 0
		w.said.Clear("statuses", "failure")
	}
	return written, err
}

// enter begins a write about a cluster.
func (w *Writer) enter(ctx context.Context, cluster string) (leave func(), err error) {
	if w.Enter != nil {
		return w.Enter(ctx, cluster)
	}
	return func() {}, w.Lease()
}

// clusterOf is the cluster that an object is about, by namespace/name.
func clusterOf(s schema.Status) string {
	switch of := s.Status; {
	case of.Backup != nil:
		return of.Backup.Cluster
	case of.Schedule != nil:
		return of.Schedule.Cluster
	case of.Restore != nil:
		return of.Restore.Cluster
	}
	return s.Metadata.Namespace + "/" + s.Metadata.Name
}

// write is one request that should be made, about which cluster, and when the object was
// written last.
type write struct {
	cluster string
	last    time.Time
	// do reports whether it is made. It does not panic.
	do func(ctx context.Context) (done bool, err error)
}

// due are the writes that may be made now. waiting reports whether others come later.
func (w *Writer) due(list []schema.Status, from Source, whole bool, now time.Time) (due []write, waiting bool) {
	add := func(paces map[string]pace, key, cluster string, do func(ctx context.Context) (bool, error)) {
		p := paces[key]
		if now.Before(p.next()) {
			waiting = true
			return
		}
		due = append(due, write{cluster, p.last, func(ctx context.Context) (done bool, err error) {
			// One that panics has failed like any other: else it would come first in each round, and end it.
			err = contain.Run(func() (err error) {
				done, err = do(ctx)
				return err
			})
			paces[key] = p.note(now, done)
			return done, err
		}})
	}
	named := make(map[string]bool, len(list))
	for _, s := range list {
		key := s.Metadata.Namespace + "/" + naming.Status(s.Kind, s.Metadata.Name)
		named[key] = true
		if phase, _ := s.Phase(); phase == schema.PhaseUnknown || othersOwn(s) {
			continue // what was written before is truer, and another writes about its own
		}
		if !w.there[key].shows(s) {
			add(w.maps, key, clusterOf(s), func(ctx context.Context) (bool, error) { return w.put(ctx, key, s, now) })
		}
		if set, labels := unmarked(s, from); len(labels) > 0 {
			add(w.sets, key, clusterOf(s), func(ctx context.Context) (bool, error) { return w.mark(ctx, set, labels) })
		}
	}
	for key, e := range w.there {
		switch {
		case named[key]:
			e.gone = time.Time{}
		case !whole || e.foreign || from.Elsewhere(e.status):
		case e.gone.IsZero():
			e.gone, waiting = now, true
		case now.Sub(e.gone) < GoneAfter:
			waiting = true
		default:
			gone := e.status.Metadata // what it was about may be another's
			add(w.maps, key, gone.Namespace+"/"+gone.Name, func(ctx context.Context) (bool, error) { return w.remove(ctx, key) })
		}
	}
	for _, paces := range []map[string]pace{w.maps, w.sets} {
		maps.DeleteFunc(paces, func(key string, _ pace) bool { return !named[key] && w.there[key] == nil })
	}
	return due, waiting
}

// othersOwn reports whether another quorate acts on the cluster, and tells of it.
func othersOwn(s schema.Status) bool {
	c := s.Status.Cluster
	return c != nil && c.Hold != nil && c.Hold.Rule == "owner"
}

// shows reports whether it says what is to be said. A ConfigMap that is somebody
// else's is never written.
func (e *entry) shows(s schema.Status) bool {
	if e == nil {
		return false
	}
	if e.foreign {
		return true
	}
	s.Observed, e.status.Observed = "", ""
	if !reflect.DeepEqual(e.status, s) {
		// What was read lacks the difference between none and nil.
		is, err1 := json.Marshal(e.status)
		want, err2 := json.Marshal(s)
		if err1 != nil || err2 != nil || string(is) != string(want) {
			return false
		}
	}
	e.status = s // shares its memory with the source
	return true
}

// list reads which ConfigMaps there are. Of one that is as it was written, it keeps what
// is known.
func (w *Writer) list(ctx context.Context) error {
	next := map[string]*entry{}
	for namespace := range w.Namespaces.All() {
		if err := w.listIn(ctx, namespace, next); err != nil {
			return fmt.Errorf("list the ConfigMaps with statuses: %w", err)
		}
	}
	w.there = next
	if w.maps == nil {
		w.maps, w.sets = map[string]pace{}, map[string]pace{}
	}
	return nil
}

// listIn reads those of one namespace, or of all. Of one that may not be read, nothing is known.
func (w *Writer) listIn(ctx context.Context, namespace string, next map[string]*entry) error {
	o := metav1.ListOptions{LabelSelector: naming.LabelStatus + "," + naming.LabelStatusBy + "=" + w.By, Limit: pageSize}
	for page, err := range kube.Pages(ctx, w.Kube.CoreV1().ConfigMaps(namespace).List, o) {
		switch {
		case kube.Withheld(namespace, err):
			return nil
		case err != nil:
			return err
		}
		for i := range page.Items {
			cm := &page.Items[i]
			key := cm.Namespace + "/" + cm.Name
			e := w.there[key]
			if e == nil || e.uid != cm.UID || e.version != cm.ResourceVersion {
				e = entryOf(cm)
			}
			next[key] = e
		}
	}
	return nil
}

// entryOf is what a ConfigMap holds. One that cannot be read holds nothing, and is
// written anew.
func entryOf(cm *corev1.ConfigMap) *entry {
	e := &entry{uid: cm.UID, version: cm.ResourceVersion}
	s, _, err := Read(cm)
	if err != nil {
		return e
	}
	e.status, e.times = plain(s), s.Status.Conditions
	return e
}

// put writes a status, and reports whether it stands. What is not as it was read is read again,
// and then written at once.
func (w *Writer) put(ctx context.Context, key string, s schema.Status, now time.Time) (done bool, err error) {
	moved, err := w.write(ctx, key, s, now)
	if moved {
		if err := w.again(ctx, key); err != nil || w.there[key].shows(s) {
			return err == nil, err
		}
		moved, err = w.write(ctx, key, s, now)
	}
	switch {
	case moved:
		return false, nil
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return true, nil // the namespace may still come, and until then there is nobody to tell
	case err != nil:
		// It may be written all the same: until it was read again it shows nothing.
		if e := w.there[key]; e != nil {
			w.there[key] = &entry{uid: e.uid, version: e.version, times: e.times}
		}
		return false, fmt.Errorf("write ConfigMap %s: %w", key, err)
	}
	return true, nil
}

// write writes a status over what was read, and reports whether that is no longer there.
func (w *Writer) write(ctx context.Context, key string, s schema.Status, now time.Time) (moved bool, err error) {
	e := w.there[key]
	if e == nil {
		e = &entry{}
	}
	timed := since(s, e.times, now)
	want, err := ConfigMap(timed, w.By, now)
	if err != nil {
		return false, err
	}
	client := w.Kube.CoreV1().ConfigMaps(want.Namespace)
	var live *corev1.ConfigMap
	if e.uid == "" {
		live, err = client.Create(ctx, want, metav1.CreateOptions{FieldManager: naming.FieldManager})
	} else {
		want.UID, want.ResourceVersion = e.uid, e.version
		live, err = client.Update(ctx, want, metav1.UpdateOptions{FieldManager: naming.FieldManager})
	}
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), apierrors.IsNotFound(err) && e.uid != "":
		return true, nil
	case err != nil:
		return false, err
	}
	w.there[key] = &entry{uid: live.UID, version: live.ResourceVersion, status: plain(s), times: timed.Status.Conditions}
	return false, nil
}

// again reads a ConfigMap that is not what was known of it.
func (w *Writer) again(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	live, err := w.Kube.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		delete(w.there, key)
		return nil
	case err != nil:
		return fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	e := entryOf(live)
	if live.Labels[naming.LabelStatus] == "" {
		e = &entry{foreign: true}
		if w.said.Changed(key, "foreign", live.ResourceVersion) {
			w.Log.Warn("a ConfigMap stands where a status should be", "configmap", key, "remedy", "rename or delete it, and the status is written there")
		}
	}
	w.there[key] = e
	return nil
}

// remove deletes the ConfigMap of an object that is gone. One that has changed meanwhile
// is found by the next list.
func (w *Writer) remove(ctx context.Context, key string) (done bool, err error) {
	e := w.there[key]
	namespace, name, _ := strings.Cut(key, "/")
	err = w.Kube.CoreV1().ConfigMaps(namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &e.uid, ResourceVersion: &e.version}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return false, fmt.Errorf("delete ConfigMap %s: %w", key, err)
	}
	delete(w.there, key)
	return true, nil
}
