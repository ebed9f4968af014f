package api

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/branches"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/schema"
)

// Statuses is asked for the status of each object.
type Statuses interface {
	// Statuses returns them in a fixed order. whole is false while one is unknown.
	Statuses() (list []schema.Status, whole bool)
	// Measured returns what the last pass has measured of a cluster.
	Measured(namespace, name string) schema.Measured
}

// Look is what is known at one time. It is shared, and never changed.
type Look struct {
	// List are the statuses in the order of kind, namespace and name.
	List []schema.Status
	// Whole is false while some object was not reconciled yet.
	Whole bool
	// Branches are the status branches of other Kubernetes clusters; nil where they are not
	// read, or not asked for.
	Branches *branches.View
	// branch is the status branch that List is from; "" for what this daemon reconciles.
	branch string
}

// ErrNotReady is the answer of a daemon that does not reconcile yet.
var ErrNotReady = errors.New("this daemon does not reconcile yet: it waits for the lease, or fills its caches; ask again, or ask the one that holds the lease")

// errTooMany refuses a further subscriber.
var errTooMany = errors.New("too many clients follow the events; ask again later, or poll the statuses")

const (
	// maxAge is how old a shared look may be: asking for 10,000 statuses takes a while,
	// whoever asks for them.
	maxAge = time.Second
	// looksPart bounds what looking for changes takes, as part of one processor.
	looksPart = 20
	// maxSubscribers bounds the clients that follow events, and maxPending the changes
	// that one of them has not read yet.
	maxSubscribers, maxPending = 100, 256
)

// Feed shares what the reconciler and the poller know among all who look, and tells
// subscribers of changes. While there are none, it does nothing.
type Feed struct {
	git func() follow.Details

	mu       sync.Mutex
	from     Statuses
	pulls    func() []Pull
	branches func() *branches.View
	events   *Events
	look     Look
	looked   time.Time

	// watching guards what follows.
	watching    sync.Mutex
	subscribers map[*Subscription]struct{}
	watched     bool
}

// NewFeed returns a Feed without statuses.
func NewFeed(git func() follow.Details) *Feed {
	return &Feed{git: git, subscribers: map[*Subscription]struct{}{}}
}

// SetStatuses has the feed look at the statuses of a reconciler from now on.
func (f *Feed) SetStatuses(from Statuses) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.from, f.looked = from, time.Time{}
}

// SetPulls has the feed show the plans of open pull requests.
func (f *Feed) SetPulls(from func() []Pull) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pulls = from
}

// Pulls returns the plans of open pull requests; none where they are not planned.
func (f *Feed) Pulls() []Pull {
	f.mu.Lock()
	from := f.pulls
	f.mu.Unlock()
	if from == nil {
		return nil
	}
	return from()
}

// Git returns what is known of the repository.
func (f *Feed) Git() follow.Details { return f.git() }

// Look returns what is known of all objects, at most a second old; ErrNotReady before the
// reconciler runs.
func (f *Feed) Look() (Look, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.from == nil {
		return Look{}, ErrNotReady
	}
	if f.looked.IsZero() || time.Since(f.looked) >= maxAge {
		f.look.List, f.look.Whole = f.from.Statuses()
		f.looked = time.Now()
	}
	return f.look, nil
}

// LookAround is Look with the status branches of other Kubernetes clusters, which are read for it.
func (f *Feed) LookAround() (Look, error) {
	look, err := f.Look()
	if err == nil {
		look.Branches = f.Branches()
	}
	return look, err
}

// Measured returns what the last pass has measured of a cluster; nothing before the
// reconciler runs.
func (f *Feed) Measured(namespace, name string) schema.Measured {
	f.mu.Lock()
	from := f.from
	f.mu.Unlock()
	if from == nil {
		return schema.Measured{}
	}
	return from.Measured(namespace, name)
}

// Change names an object whose status has changed. Phase is "" where it is gone.
type Change struct {
	Kind      string       `json:"kind"`
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"`
	Phase     schema.Phase `json:"phase"`
}

// Subscription gets changes.
type Subscription struct {
	// Changes is closed by no one. A change that finds it full is left out.
	Changes chan Change
	// Reset has something to read when changes were left out, Git when what is known of
	// the repository, of its pull requests or of its status branches has changed.
	Reset, Git chan struct{}
}

// Subscribe follows changes until cancel is called. It fails when too many do.
func (f *Feed) Subscribe() (s *Subscription, cancel func(), err error) {
	beside := f.Branches() // it may wait a moment
	f.watching.Lock()
	defer f.watching.Unlock()
	if len(f.subscribers) >= maxSubscribers {
		return nil, nil, errTooMany
	}
	s = &Subscription{make(chan Change, maxPending), make(chan struct{}, 1), make(chan struct{}, 1)}
	f.subscribers[s] = struct{}{}
	if !f.watched {
		f.watched = true
		before, _ := f.Look()
		go f.watch(before, f.shownGit(), f.Pulls(), beside)
	}
	return s, sync.OnceFunc(func() {
		f.watching.Lock()
		defer f.watching.Unlock()
		delete(f.subscribers, s)
	}), nil
}

// watch tells the subscribers of changes, until there are none.
func (f *Feed) watch(before Look, git follow.Details, pulls []Pull, beside *branches.View) {
	for pause := maxAge; ; {
		time.Sleep(pause)
		begun := time.Now()
		now, err := f.Look()
		if err == nil && !same(before.List, now.List) {
			f.tell(changes(before.List, now.List))
			before = now
		}
		again, open, around := f.shownGit(), f.Pulls(), f.Branches()
		if !reflect.DeepEqual(git, again) || !slices.Equal(pulls, open) || beside != around {
			git, pulls, beside = again, open, around
			f.tellGit()
		}
		pause = max(maxAge, looksPart*time.Since(begun))
		if f.alone() {
			return
		}
	}
}

// shownGit is what is known of the repository but for what ticks.
func (f *Feed) shownGit() follow.Details {
	d := f.git()
	d.LastSuccess = time.Time{}
	return d
}

// same reports whether two lists are the same look.
func same(a, b []schema.Status) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// alone reports whether nobody follows any more. Then the watch ends, and the next
// subscriber begins another.
func (f *Feed) alone() bool {
	f.watching.Lock()
	defer f.watching.Unlock()
	f.watched = len(f.subscribers) > 0
	return !f.watched
}

func (f *Feed) tell(changes []Change) {
	f.watching.Lock()
	defer f.watching.Unlock()
	for s := range f.subscribers {
		for _, c := range changes {
			select {
			case s.Changes <- c:
			default:
				signal(s.Reset)
			}
		}
	}
}

func (f *Feed) tellGit() {
	f.watching.Lock()
	defer f.watching.Unlock()
	for s := range f.subscribers {
		signal(s.Git)
	}
}

// signal leaves one signal at most.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// changes are the objects whose status differs between two lists in the same order.
func changes(before, now []schema.Status) []Change {
	was := make(map[string]schema.Status, len(before))
	for _, s := range before {
		was[id(s)] = s
	}
	var list []Change
	for _, s := range now {
		old, there := was[id(s)]
		delete(was, id(s))
		if !there || !reflect.DeepEqual(old.Status, s.Status) {
			phase, _ := s.Phase()
			list = append(list, Change{s.Kind, s.Metadata.Namespace, s.Metadata.Name, phase})
		}
	}
	for _, s := range before {
		if _, gone := was[id(s)]; gone {
			list = append(list, Change{Kind: s.Kind, Namespace: s.Metadata.Namespace, Name: s.Metadata.Name})
		}
	}
	return list
}

// id names an object.
func id(s schema.Status) string {
	return s.Kind + "/" + s.Metadata.Namespace + "/" + s.Metadata.Name
}

// Find returns the status of one object, or an error where there is none.
func (l Look) Find(kind, namespace, name string) (schema.Status, error) {
	for _, s := range l.List {
		if s.Kind == kind && s.Metadata.Namespace == namespace && s.Metadata.Name == name {
			return s, nil
		}
	}
	return schema.Status{}, fmt.Errorf("no %s %s/%s is known: no file of the commit in force names it", kind, namespace, name)
}
