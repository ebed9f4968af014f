// Package checks asks the checks of spec.upgrade.checks: whether a URL answers, whether a query
// of PromQL is true, whether the newest run of a CronJob has succeeded. It only reads, asks no
// host that it was not given, and what it cannot find out does not hold. What follows from the
// answers is decided in package plan.
//
// A file of a tenant makes the daemon send a request from where the daemon is. So:
//
//	which hosts        those of --check-hosts, by name and port; all others are refused here
//	                   once more, however they got past the validation
//	which addresses    what a name resolves to is judged when it is dialled: no address of
//	                   the link, such as 169.254.169.254, and no loopback by another name
//	redirects          never followed: a redirect is an answer
//	what is sent       GET, no credentials, no cookies, no proxy
//	what is told       the URL without its query, the status, and numbers: no byte of a body
//	which CronJob      one of the namespace of the cluster; it is read, and never started
//	how long, how much Timeout of the check, 1 MiB, 5000 Jobs; eight clusters at a time
package checks

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

const (
	// fresh is how long an answer counts for all clusters that wait.
	fresh = 10 * time.Second
	// lapse is how long nothing may have been asked for the answers to count as one row of them.
	lapse = 2 * time.Minute
	// atOnce is how many clusters' checks are asked at the same time.
	atOnce = 8
)

// Asker asks checks, and remembers their last answers. What is remembered saves questions, and
// says since when a check holds: a process that has nothing of it begins to count anew.
type Asker struct {
	hosts  []string
	kube   kubernetes.Interface
	now    func() time.Time
	client *http.Client

	mu    sync.Mutex
	known map[string]*cluster
}

// New returns an Asker that asks these hosts and ports only, see schema.CheckHost, and this API
// server for CronJobs and their Jobs.
func New(hosts []string, kube kubernetes.Interface, now func() time.Time) *Asker {
	a := &Asker{hosts: hosts, kube: kube, now: now, known: map[string]*cluster{}}
	a.client = &http.Client{
		Transport: &http.Transport{
			DialContext: a.dial, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return a
}

// cluster is what is remembered of one, while its spec is the same: each commit begins anew.
type cluster struct {
	spec string

	mu      sync.Mutex // held while it is asked: who comes meanwhile waits for the same answers
	answers map[string]last
}

// last is what was answered last, and when; and Subject.Done of then.
type last struct {
	state.Check
	at, done time.Time
}

// of returns what is remembered of a cluster.
func (a *Asker) of(key string, spec schema.ClusterSpec) *cluster {
	hash := schema.SpecHash(spec)
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.known[key]; c != nil && c.spec == hash {
		return c
	}
	c := &cluster{spec: hash, answers: map[string]last{}}
	a.known[key] = c
	return c
}

// Forget drops what is remembered of a cluster.
func (a *Asker) Forget(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, key)
}

// Subject is a cluster that has checks.
type Subject struct {
	// Key is namespace/name.
	Key string
	// Spec is the cluster's, with the checks.
	Spec schema.ClusterSpec
	// Done is when the clusters of lower waves were last changed, by the clock of the API server;
	// zero where this is not known of the cluster itself. Runs of CronJobs count from then on.
	Done time.Time
}

// Ask asks the checks of clusters, some at a time, until one is found of which enough says no.
func (a *Asker) Ask(ctx context.Context, clusters []Subject, enough func([]state.Check) bool) []state.Check {
	var all []state.Check
	for some := range slices.Chunk(clusters, atOnce) {
		answers := make([][]state.Check, len(some))
		var asked sync.WaitGroup
		for i, s := range some {
			asked.Go(func() { answers[i] = a.ask(ctx, s) })
		}
		asked.Wait()
		all = append(all, slices.Concat(answers...)...)
		if enough(all) {
			break
		}
	}
	return all
}

// ask asks the checks of one cluster, all at the same time, but for those that were asked a moment
// ago.
func (a *Asker) ask(ctx context.Context, s Subject) []state.Check {
	c := a.of(s.Key, s.Spec)
	c.mu.Lock()
	defer c.mu.Unlock()
	checks := s.Spec.Upgrade.Checks
	answers := make([]last, len(checks))
	var asked sync.WaitGroup
	for i, check := range checks {
		before, known := c.answers[check.Name]
		if age := a.now().Sub(before.at); known && before.done.Equal(s.Done) && age >= 0 && age < fresh {
			answers[i] = before
			continue
		}
		asked.Go(func() {
			begun := a.now()
			got := a.get(ctx, s, check)
			next := last{at: a.now(), done: s.Done}
			next.Check = state.Check{Cluster: s.Key, Name: check.Name, For: check.Stable(), Problem: got.problem, Detail: got.detail, Do: got.do}
			// An answer counts from when it was asked for, and on from the one before if it says the same.
			next.Since = begun
			if gap := begun.Sub(before.at); known && gap >= 0 && gap < lapse && (before.Problem == "") == (next.Problem == "") {
				next.Since = before.Since
			}
			answers[i] = next
		})
	}
	asked.Wait()
	told := make([]state.Check, len(answers))
	for i, next := range answers {
		c.answers[next.Name], told[i] = next, next.Check
	}
	return told
}

// Unasked are the checks of clusters where nothing is asked, for plans that are only shown.
func Unasked(clusters []Subject) []state.Check {
	var all []state.Check
	for _, s := range clusters {
		for _, check := range s.Spec.Upgrade.Checks {
			all = append(all, state.Check{Cluster: s.Key, Name: check.Name, For: check.Stable()})
		}
	}
	return all
}

// get asks one check.
func (a *Asker) get(ctx context.Context, s Subject, c schema.UpgradeCheck) (got answer) {
	ctx, cancel := context.WithTimeout(ctx, c.Patience())
	defer cancel()
	switch {
	case c.HTTP != nil:
		got.problem, got.detail = a.getHTTP(ctx, *c.HTTP, c.Patience())
	case c.Prometheus != nil:
		got.problem, got.detail = a.query(ctx, *c.Prometheus, c.Patience())
	case c.CronJob != nil:
		got = a.askCronJob(ctx, s, c.CronJob.Name, c.Patience())
	default:
		got.problem = "it asks nothing that this quorate knows"
	}
	return got
}

// dial connects to a host that may be asked.
func (a *Asker) dial(ctx context.Context, network, host string) (net.Conn, error) {
	if !slices.Contains(a.hosts, host) {
		return nil, errHost
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		return nil, errHost
	}
	d := &net.Dialer{Control: controlFor(name)}
	return d.DialContext(ctx, network, host)
}
