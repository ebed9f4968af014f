package status

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/cmd/quorate/internal/api"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/reconciler/statuses"
	"github.com/quorate/quorate/schema"
)

// lines is a text that is written and read at once.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Statuses are what a real daemon is asked for: another list after each change.
func (f *fleet) Statuses() ([]schema.Status, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.items, true
}

// Measured is what a pass has measured: nothing here.
func (*fleet) Measured(string, string) schema.Measured { return schema.Measured{} }

// tells lets the API of a real daemon answer.
func (f *fleet) tells() *fleet {
	feed := api.NewFeed(func() follow.Details { return follow.Details{} })
	feed.SetStatuses(f)
	f.real = api.Handler(feed)
	return f
}

// count is how often the daemon was asked, and followed.
func (f *fleet) count() (asked, followed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked), f.events
}

// watched is a quorate status --watch that runs.
type watched struct {
	*testing.T
	out, errs lines
	stop      context.CancelFunc
	ended     chan int
}

func (f *fleet) watches(args ...string) *watched {
	ctx, stop := context.WithCancel(f.Context())
	w := &watched{T: f.T, stop: stop, ended: make(chan int, 1)}
	go func() { w.ended <- run(ctx, append([]string{"--watch"}, args...), &w.out, &w.errs) }()
	return w
}

func (w *watched) shows(text string) {
	w.Helper()
	cmdtest.Await(w.T, func() bool { return strings.Contains(w.out.String(), text) })
}

// quiet interrupts it, and checks that this is no failure, what was said, and how many
// texts that begin so there were.
func (w *watched) quiet(said, begin string, texts int) {
	w.Helper()
	w.stop()
	if status := <-w.ended; status != 0 || w.errs.String() != said || strings.Count(w.out.String(), begin) != texts {
		w.Errorf("it ended with %d, said %q, and showed\n%s", status, &w.errs, &w.out)
	}
}

// moved is orders with that version at its last member.
func moved(version string) schema.Status {
	s := orders()
	s.Status.Cluster.Members[1].Version = version
	return s
}

// 234: without a stream of events a roll is shown as it moves, each state once, and an
// interruption is no failure.
func TestARollIsWatched(t *testing.T) {
	f := newFleet(t, orders())
	w := f.watches("shop/orders", "--server", f.daemon.URL)
	w.shows("orders-2   -        -")
	before, _ := f.count()
	cmdtest.Await(t, func() bool { asked, _ := f.count(); return asked > before })
	f.show(moved("3.6.16"))
	w.shows("orders-2   -        3.6.16")
	f.daemon.CloseClientConnections()
	f.daemon.Close()
	cmdtest.Await(t, func() bool { return strings.Contains(w.errs.String(), "ask the daemon") })
	w.stop()
	if status := <-w.ended; status != 0 || strings.Count(w.out.String(), "EtcdCluster shop/orders") != 2 {
		t.Errorf("ended with %d:\n%s", status, w.out.String())
	}
}

// 256: a daemon that tells of changes is asked after each that concerns what is shown, and
// a stream that breaks is opened again.
func TestTheEventsOfADaemonAreFollowed(t *testing.T) {
	f := newFleet(t, orders(), sessions()).tells()
	w := f.watches("shop/orders", "--server", f.daemon.URL)
	w.shows("orders-2   -        -")
	cmdtest.Await(t, func() bool { asked, followed := f.count(); return followed == 1 && asked > 1 })
	f.show(moved("3.6.15"), sessions())
	w.shows("orders-2   -        3.6.15")
	f.daemon.CloseClientConnections()
	f.show(moved("3.6.16"), sessions())
	w.shows("orders-2   -        3.6.16")
	cmdtest.Await(t, func() bool { _, followed := f.count(); return followed == 2 })
	f.show(moved("3.6.17"))
	w.shows("orders-2   -        3.6.17")
	w.quiet("", "EtcdCluster shop/orders", 4)
}

// 256: so is one behind the API server.
func TestTheEventsOfADaemonInAPodAreFollowed(t *testing.T) {
	f := newFleet(t, orders()).tells().acts()
	w := f.watches("-o", "json")
	w.shows(`"id": "a2"`)
	cmdtest.Await(t, func() bool { asked, followed := f.count(); return followed == 1 && asked > 1 })
	f.show(orders(), sessions())
	w.shows(`"name": "sessions"`)
	w.quiet("", "{\n  \"items\": [", 2)
}

// 256: what a daemon has left is asked for again and again.
func TestRecordsArePolled(t *testing.T) {
	f := newFleet(t)
	record := func(s schema.Status) {
		cm, err := statuses.ConfigMap(s, "x", time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC))
		if err != nil {
			t.Fatal(err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.records = []corev1.ConfigMap{*cm}
	}
	record(orders())
	w := f.watches("shop/orders", "-o", "yaml")
	w.shows("id: a2\n")
	record(moved("3.6.16"))
	w.shows("id: a2\n      name: orders-2\n      version: 3.6.16")
	w.quiet(w.errs.String(), "\n---\napiVersion", 1)
	if strings.Count(w.errs.String(), "\n") != 1 {
		t.Errorf("it said %s", &w.errs)
	}
}

// tongue is a source that tells when a test does.
type tongue struct{ told chan func() }

func (tongue) ask(context.Context, query) (answer, error) {
	return answer{}, errors.New("is not asked")
}

func (g tongue) follow(ctx context.Context, _ query, told func()) error {
	told()
	g.told <- told
	select {
	case <-ctx.Done():
	case <-g.told: // the test ends it
	}
	return errors.New("it broke")
}

// 256: while a stream is open nobody asks but when it tells, or after half a minute; and
// each two seconds where it is broken or something else is shown.
func TestAStreamSavesQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		g := tongue{make(chan func())}
		s := newStream(ctx, g, query{})
		told := <-g.told
		is := func(trust bool, want time.Duration) {
			t.Helper()
			begun := time.Now()
			if s.await(ctx, trust); time.Since(begun) != want {
				t.Errorf("waited for %s, want %s", time.Since(begun), want)
			}
		}
		is(true, leastPause) // it has opened
		is(true, resyncEvery)
		is(false, pollEvery)
		go func() {
			time.Sleep(3 * time.Second)
			told()
		}()
		is(true, 3*time.Second)
		told()
		told()
		is(true, leastPause) // both at once
		g.told <- nil
		is(true, leastPause) // it has broken
		is(true, pollEvery)
		told = <-g.told
		is(true, leastPause) // it is open again
		is(true, resyncEvery)
		go stop()
		is(true, 0)
		<-s.ended
	})
}

func TestEventsConcernWhatIsAskedFor(t *testing.T) {
	for _, tc := range []struct {
		q          query
		name, data string
		want       bool
	}{
		{query{}, "status", `{"kind":"EtcdCluster","namespace":"shop","name":"orders","phase":"Ready"}`, true},
		{query{Namespace: "shop", Name: "orders"}, "status", `{"kind":"EtcdCluster","namespace":"shop","name":"orders","phase":""}`, true},
		{query{Namespace: "shop", Name: "orders"}, "status", `{"kind":"EtcdCluster","namespace":"shop","name":"users","phase":"Ready"}`, false},
		{query{Kind: schema.KindRestore}, "status", `{"kind":"EtcdCluster","namespace":"shop","name":"users","phase":"Ready"}`, false},
		{query{Name: "orders"}, "status", `of a later release`, true},
		{query{Name: "orders"}, "reset", `{}`, true},
		{query{}, "git", `{}`, false},
		{query{}, "", `{}`, false},
	} {
		if got := tc.q.concerns(tc.name, tc.data); got != tc.want {
			t.Errorf("%s %s of %+v: %t", tc.name, tc.data, tc.q, got)
		}
	}
}

// On a terminal a text replaces the one before; else each is one more.
func TestATextIsShownOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		live      bool
		format    string
		out, errs string
	}{
		"a terminal": {true, cli.Text, clearScreen + "a\n" + clearScreen + "a\n\nit is\uFFFD late\n" + clearScreen + "b\n", ""},
		"a pipe":     {false, cli.Text, "a\n\nb\n", "quorate: it is\x1b late\n"},
		"JSON":       {false, cli.JSON, "a\nb\n", "quorate: it is\x1b late\n"},
		"YAML":       {false, cli.YAML, "a\n---\nb\n", "quorate: it is\x1b late\n"},
	} {
		var out, errs bytes.Buffer
		s := screen{out: &out, errs: &errs, format: tc.format, live: tc.live}
		for _, next := range [][2]string{{"a\n", ""}, {"a\n", ""}, {"a\n", "it is\x1b late"}, {"a\n", "it is\x1b late"}, {"b\n", ""}} {
			if err := s.show(next[0], next[1]); err != nil {
				t.Fatal(err)
			}
		}
		if out.String() != tc.out || errs.String() != tc.errs {
			t.Errorf("%s: %q, said %q", name, &out, &errs)
		}
	}
}
