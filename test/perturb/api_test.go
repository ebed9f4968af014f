package perturb

import (
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/test/perturb/score"
)

// The ways in which a write to the API server is disturbed.
const (
	refused   = "refused"              // it is answered with an error, and not done
	answered  = "answered-with-error"  // it is done, and answered with an error
	killed    = "killed-after"         // it is done, and quorate is killed before the answer
	heldBack  = "event-held-back"      // the watches tell of it a minute later
	unseen    = "state-unseen"         // the watches never tell of it, only of the next change
	stale     = "killed-into-the-past" // quorate is killed, and its lists and watches are those of before for a minute
	stopped   = "killed-instead"       // quorate is killed before it is done
	pastLasts = time.Minute
)

// errKilled is what a process gets that lives no more.
var errKilled = errors.New("this process was killed")

// gate stands between the processes of quorate and the API server, and disturbs one
// write.
type gate struct {
	api *reconcilertest.FakeAPI

	mu sync.Mutex
	// counter counts the writes.
	counter
	// last is when quorate has changed something last.
	last time.Time
	// until is how long the past lasts, and past what the lists were in it.
	until time.Time
	past  map[apischema.GroupVersionResource]runtime.Object
	// lists are what the caches of quorate list.
	lists map[apischema.GroupVersionResource]clienttesting.ListActionImpl
}

func newGate(api *reconcilertest.FakeAPI, at, how string) *gate {
	return &gate{
		api: api, counter: newCounter(at, how),
		past: map[apischema.GroupVersionResource]runtime.Object{}, lists: map[apischema.GroupVersionResource]clienttesting.ListActionImpl{},
	}
}

// process is one process of quorate, as the gate knows it.
type process struct {
	gate *gate
	mu   sync.Mutex
	dead bool
	// held are the objects whose watches tell nothing for now, until when.
	held map[string]time.Time
}

func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// client reaches the API server as this process.
func (p *process) client() *fake.Clientset {
	c := &fake.Clientset{}
	c.AddReactor("*", "*", p.react)
	c.AddWatchReactor("*", p.watch)
	return c
}

func (p *process) react(a clienttesting.Action) (bool, runtime.Object, error) {
	if p.isDead() {
		return true, nil, errKilled
	}
	var o runtime.Object
	var err error
	switch v := a.GetVerb(); v {
	case "get", "list", "watch":
		o, err = p.gate.read(a)
	default:
		o, err = p.write(a)
	}
	return true, o, err
}

// read answers from the past where the caches ask while it lasts. What asks for the
// newest state gets it: an API server that lags behind answers only its own.
func (g *gate) read(a clienttesting.Action) (runtime.Object, error) {
	if list, ok := a.(clienttesting.ListActionImpl); ok && list.ListOptions.ResourceVersion == "0" {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.lists[a.GetResource()] = list
		if past := g.past[a.GetResource()]; past != nil && time.Now().Before(g.until) {
			return past.DeepCopyObject(), nil
		}
	}
	return g.api.Invokes(a, nil)
}

func (p *process) write(a clienttesting.Action) (runtime.Object, error) {
	g := p.gate
	how := g.count(sortOf(a))
	failure := apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	switch how {
	case refused:
		return nil, failure
	case stopped:
		p.kill()
		return nil, errKilled
	case heldBack, unseen:
		p.hold(keyOf(a.GetResource(), a.GetNamespace(), nameOf(a)), time.Now().Add(pastLasts))
	case stale:
		g.remember()
	}
	o, err := g.api.Invokes(a, nil)
	switch how {
	case answered:
		return nil, failure
	case killed, stale:
		p.kill()
		return nil, errKilled
	}
	return o, err
}

// count counts a write, and returns how to disturb it, "" for not at all.
func (g *gate) count(sort string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = time.Now()
	return g.next(sort)
}

// remember keeps what the caches would list now.
func (g *gate) remember() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = time.Now().Add(pastLasts)
	for resource, list := range g.lists {
		if past, err := g.api.Invokes(list, nil); err == nil && past != nil {
			g.past[resource] = past.DeepCopyObject()
		}
	}
}

func (p *process) hold(key string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[key] = until
}

// heldUntil is until when the watches tell nothing of an object.
func (p *process) heldUntil(key string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held[key]
}

// watch tells what the API server tells, but for what is held back. A process that begins
// in the past gets no event while that lasts, and then has to list again.
func (p *process) watch(a clienttesting.Action) (bool, watch.Interface, error) {
	if p.isDead() {
		return true, nil, errKilled
	}
	inner, err := p.gate.api.InvokesWatch(a)
	if err != nil {
		return true, nil, err
	}
	p.gate.mu.Lock()
	blind := p.gate.until
	if p.gate.how != stale {
		blind = time.Time{}
	}
	p.gate.mu.Unlock()
	w := &heldWatch{process: p, inner: inner, out: make(chan watch.Event), stop: make(chan struct{}), resource: a.GetResource()}
	go w.run(blind)
	return true, w, nil
}

// heldWatch is a watch some of whose events come late.
type heldWatch struct {
	process  *process
	inner    watch.Interface
	out      chan watch.Event
	stop     chan struct{}
	once     sync.Once
	resource apischema.GroupVersionResource
	// late are the events that wait, with the object of each.
	late map[string][]watch.Event
}

func (w *heldWatch) ResultChan() <-chan watch.Event { return w.out }

func (w *heldWatch) Stop() { w.once.Do(func() { close(w.stop) }) }

func (w *heldWatch) run(blind time.Time) {
	defer close(w.out)
	defer w.inner.Stop()
	w.late = map[string][]watch.Event{}
	if wait := time.Until(blind); wait > 0 {
		w.beBlind(wait)
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
			if !w.release() {
				return
			}
		case e, open := <-w.inner.ResultChan():
			if !open || !w.pass(e) {
				return
			}
		}
	}
}

// beBlind drops all events, and then says that the watch is too old to go on.
func (w *heldWatch) beBlind(wait time.Duration) {
	end := time.After(wait)
	for {
		select {
		case <-w.stop:
			return
		case <-end:
			gone := apierrors.NewResourceExpired("too old")
			w.send(watch.Event{Type: watch.Error, Object: &gone.ErrStatus})
			return
		case _, open := <-w.inner.ResultChan():
			if !open {
				return
			}
		}
	}
}

func (w *heldWatch) send(e watch.Event) bool {
	select {
	case w.out <- e:
		return true
	case <-w.stop:
		return false
	}
}

func (w *heldWatch) pass(e watch.Event) bool {
	o, err := meta.Accessor(e.Object)
	if err != nil {
		return w.send(e)
	}
	key := keyOf(w.resource, o.GetNamespace(), o.GetName())
	switch until := w.process.heldUntil(key); {
	case until.IsZero() || !time.Now().Before(until) && len(w.late[key]) == 0:
		return w.send(e)
	case w.process.gate.how == unseen && len(w.late[key]) == 1:
		// The next change tells what the one before has not; what was made in it comes
		// as the object as it is now.
		if e.Type == watch.Modified {
			e.Type = w.late[key][0].Type
		}
		delete(w.late, key)
		w.process.hold(key, time.Time{})
		return w.send(e)
	}
	w.late[key] = append(w.late[key], e)
	return true
}

// release sends what has waited for long enough.
func (w *heldWatch) release() bool {
	for key, events := range w.late {
		if time.Now().Before(w.process.heldUntil(key)) {
			continue
		}
		delete(w.late, key)
		for _, e := range events {
			if !w.send(e) {
				return false
			}
		}
	}
	return true
}

// sortOf is what a write does to which object: "update-configmaps-orders-record".
func sortOf(a clienttesting.Action) string {
	resource := a.GetResource().Resource
	if a.GetSubresource() != "" {
		resource += "." + a.GetSubresource()
	}
	return strings.Join([]string{a.GetVerb(), resource, ofJob.ReplaceAllString(score.Plain(nameOf(a)), "")}, "-")
}

// ofJob is what makes the name of a Job, and of what it reads, its own.
var ofJob = regexp.MustCompile(`-[0-9a-f]{8}$`)

func nameOf(a clienttesting.Action) string {
	if named, ok := a.(interface{ GetName() string }); ok && named.GetName() != "" {
		return named.GetName()
	}
	if create, ok := a.(clienttesting.CreateAction); ok {
		if o, err := meta.Accessor(create.GetObject()); err == nil {
			return o.GetName()
		}
	}
	return ""
}

func keyOf(r apischema.GroupVersionResource, namespace, name string) string {
	return r.Resource + " " + namespace + "/" + name
}
