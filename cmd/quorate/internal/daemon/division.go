package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/cmd/quorate/internal/shards"
	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/contain"
)

// The annotations of a daemon's own lease: the commit that it has in force, and the one with
// which it has reconciled all of its clusters, and written their statuses.
const (
	annotationCommit = "quorate.dev/commit"
	annotationTold   = "quorate.dev/told"
)

const (
	// turnRetry is the time between two tries to get the turn to disrupt a cluster.
	turnRetry = 500 * time.Millisecond
	// giveUpAfter is how long the passes under way over the clusters of a shard that
	// another daemon should have may still take.
	giveUpAfter = 30 * time.Second
)

// errGivenUp ends a claim that is given up, rather than lost.
var errGivenUp = errors.New("the lease is given up")

// division is this daemon's part of the clusters, where --shards divides them. Its leases are
//
//	quorate             held by all daemons with the same --shards together, so that none with
//	                    another number, or without it, acts beside them; left to expire
//	quorate.lead        held by the one that accepts commits and tells of all clusters
//	quorate.daemon-ID   each daemon's own, by which the others know that it is there
//	quorate.shard-N     held by the daemon that reconciles the clusters of a shard
//	quorate.disrupting  held while one of them begins to disrupt a cluster
//
// and those of an instance begin with its lease's name: no instance has a dot in its name.
type division struct {
	lease    Lease
	identity string
	kube     kubernetes.Interface
	log      *slog.Logger
	// together is the claim that all daemons share, and lead that of one.
	together, lead *claim
	held, unheld   prometheus.Gauge

	mu sync.Mutex
	// tenancies are those of the shards that this daemon holds.
	tenancies map[int]*tenancy
	// seen are the leases by name, as they were read last, and looked is when that was: while
	// they cannot be read, none of them expires.
	seen   map[string]sighting
	looked time.Time
}

// sighting is a lease as it was read, and when it was first read so.
type sighting struct {
	holder, version, commit, told string
	at                            time.Time
}

// alive reports whether a lease was held when the leases were read at a time. Only its changes
// count, not the clock of its holder.
func (s sighting) alive(looked time.Time) bool {
	return s.holder != "" && looked.Sub(s.at) < leaseDuration
}

func newDivision(lease Lease, kube kubernetes.Interface, registry prometheus.Registerer, log *slog.Logger) *division {
	d := &division{
		lease: lease, identity: ownIdentity(), kube: kube, log: log, tenancies: map[int]*tenancy{}, seen: map[string]sighting{},
		held:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "quorate_shards_held", Help: "Shards of --shards whose clusters this process reconciles; 0 without --shards."}),
		unheld: prometheus.NewGauge(prometheus.GaugeOpts{Name: "quorate_shards_unheld", Help: "Shards of --shards that no process holds, as this one sees it; 0 without --shards."}),
	}
	registry.MustRegister(d.held, d.unheld)
	d.together = claimTo(lease.lockOf(kube, lease.name(), "shards-"+strconv.Itoa(lease.Shards)), log)
	d.together.lock.kept = true
	d.lead = d.claim("lead")
	return d
}

// claim returns this daemon's own claim to one of the leases.
func (d *division) claim(name string) *claim {
	return claimTo(d.lease.lockOf(d.kube, d.name(name), d.identity), d.log)
}

func (d *division) name(of string) string { return d.lease.name() + "." + of }

func shardName(shard int) string { return "shard-" + strconv.Itoa(shard) }

// tenants are the reconciler, whose clusters a division gives and takes, and what it follows.
type tenants interface {
	Take(of func(cluster string) bool)
	GiveUp(of func(cluster string) bool)
	Told(commit string) bool
}

// run calls work while this daemon is one of those that divide the clusters, and lead while it is
// the one that leads. commit returns the commit in force, and wake has it looked for.
func (d *division) run(ctx context.Context, to tenants, commit func() string, wake func(), work, lead func(ctx context.Context) error) error {
	return d.together.run(ctx, func(ctx context.Context) error {
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		var parts sync.WaitGroup
		part := func(run func() error) {
			parts.Go(func() {
				if err := run(); err != nil {
					end(err) // what is lost may be another's: this daemon ends
				}
			})
		}
		part(func() error { return work(ctx) })
		part(func() error { return d.lead.run(ctx, lead) })
		part(func() error { return d.divide(ctx, to, commit, wake) })
		parts.Wait()
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			return cause
		}
		return nil
	})
}

// divide claims the shards that are this daemon's, and gives up those of others, until ctx ends.
func (d *division) divide(ctx context.Context, to tenants, commit func() string, wake func()) error {
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	own := heartbeat{division: d, pod: d.ownPod(ctx)}
	defer own.end(ctx)
	var keeping sync.WaitGroup
	defer keeping.Wait()
	asked, woken := map[int]*asking{}, ""
	for ticker := time.NewTicker(leaseRetry); ; {
		told, inForce := "", commit()
		if to.Told(inForce) {
			told = inForce
		}
		err := contain.Run(func() error { return errors.Join(own.beat(ctx, inForce, told), d.look(ctx)) })
		if err != nil && ctx.Err() == nil {
			d.log.Warn("the leases of the other daemons are not known, and the shards stay where they are", "error", err.Error())
		}
		if accepted := d.accepted(); accepted != "" && accepted != inForce && accepted != woken {
			woken = accepted
			wake()
		}
		if err == nil {
			d.ask(ctx, asked, func(shard int, a *asking) {
				keeping.Go(func() {
					defer close(a.ended)
					if err := d.keep(ctx, shard, a, to); err != nil {
						lose(err)
					}
				})
			})
		}
		select {
		case <-ctx.Done():
			ticker.Stop()
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				return cause
			}
			return nil
		case <-ticker.C:
		}
	}
}

// asking is a shard that this daemon asks for, or holds, until it is to give it up.
type asking struct{ giveUp, ended chan struct{} }

// ask has keep called for each shard that is assigned to this daemon, and has those given up that
// are not.
func (d *division) ask(ctx context.Context, asked map[int]*asking, keep func(shard int, a *asking)) {
	assigned := shards.Assign(d.daemons(), d.lease.Shards)
	for shard, daemon := range assigned {
		a := asked[shard]
		if a != nil {
			select {
			case <-a.ended:
				a = nil
				delete(asked, shard)
			default:
			}
		}
		switch {
		case daemon == d.identity && a == nil && ctx.Err() == nil:
			asked[shard] = &asking{make(chan struct{}), make(chan struct{})}
			keep(shard, asked[shard])
		case daemon != d.identity && a != nil:
			a.stop()
		}
	}
}

// stop has the shard given up.
func (a *asking) stop() {
	select {
	case <-a.giveUp:
	default:
		close(a.giveUp)
	}
}

// keep reconciles the clusters of a shard once it is free, until it is to be given up. Then the
// passes under way end first, and are ended where they take long.
func (d *division) keep(ctx context.Context, shard int, a *asking, to tenants) error {
	c := d.claim(shardName(shard))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-ctx.Done():
		case <-a.giveUp:
			if c.phase.Load() != acting {
				stop()
			}
		}
	}()
	of := func(cluster string) bool { return shards.Of(cluster, d.lease.Shards) == shard }
	err := c.run(ctx, func(ctx context.Context) error {
		t := newTenancy(c)
		d.let(shard, t)
		d.log.Info("shard taken", "shard", shard)
		to.Take(of)
		select {
		case <-ctx.Done():
		case <-a.giveUp:
		}
		t.close(ctx, giveUpAfter)
		d.let(shard, nil)
		to.GiveUp(of)
		d.log.Info("shard given up", "shard", shard)
		return errGivenUp
	})
	switch {
	case errors.Is(err, errGivenUp) && c.lock.age() < leaseRenew:
		return nil
	case errors.Is(err, errGivenUp):
		return errLeaseLost
	}
	return err
}

// let notes a tenancy of a shard, nil for none.
func (d *division) let(shard int, t *tenancy) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tenancies, shard)
	if t != nil {
		d.tenancies[shard] = t
	}
	d.held.Set(float64(len(d.tenancies)))
}

// tenancy returns that of a cluster's shard, nil for none.
func (d *division) tenancy(cluster string) *tenancy {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tenancies[shards.Of(cluster, d.lease.Shards)]
}

// Enter implements reconciler.Shards.
func (d *division) Enter(ctx context.Context, cluster string) (entered context.Context, leave func(), mine bool) {
	t := d.tenancy(cluster)
	if t == nil {
		return nil, nil, false
	}
	return t.enter(ctx)
}

// Mine implements reconciler.Shards.
func (d *division) Mine(cluster string) bool {
	t := d.tenancy(cluster)
	return t != nil && t.open()
}

// Held implements reconciler.Shards.
func (d *division) Held(cluster string) error {
	t := d.tenancy(cluster)
	if t == nil {
		return errLeaseLost
	}
	return t.claim.held()
}

// Whose implements reconciler.Shards.
func (d *division) Whose(cluster string) (holder, commit string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.seen[d.name(shardName(shards.Of(cluster, d.lease.Shards)))]
	if !s.alive(d.looked) {
		return "", ""
	}
	return s.holder, d.seen[d.name(daemonName(s.holder))].told
}

// Begin implements reconciler.Shards.
func (d *division) Begin(ctx context.Context) (reconciler.Turn, error) {
	t := &turn{claim: d.claim("disrupting"), done: make(chan struct{}), ended: make(chan struct{})}
	t.claim.retry = turnRetry
	waits, stop := context.WithCancel(context.WithoutCancel(ctx))
	begun := make(chan struct{})
	go func() {
		defer close(t.ended)
		defer stop()
		_ = t.claim.run(waits, func(ctx context.Context) error {
			close(begun)
			select {
			case <-ctx.Done():
			case <-t.done:
			}
			<-t.done // what is under way may still end
			return errGivenUp
		})
	}()
	select {
	case <-begun:
		return t, nil
	case <-ctx.Done():
		close(t.done)
		stop()
		<-t.ended
		return nil, ctx.Err()
	case <-t.ended:
		return nil, errLeaseLost
	}
}

// turn is a lease that is held for one action.
type turn struct {
	claim       *claim
	done, ended chan struct{}
}

// Held implements reconciler.Turn.
func (t *turn) Held() error { return t.claim.held() }

// End implements reconciler.Turn. The lease is given back when it returns: the next claim of
// this daemon has the same name.
func (t *turn) End() {
	close(t.done)
	<-t.ended
}

// look reads the leases.
func (d *division) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaseRenew)
	defer cancel()
	list, err := d.kube.CoordinationV1().Leases(d.lease.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the leases of %s: %w; let quorate list leases in its own namespace, as deploy/overlays/shards and shards of the Helm chart do", d.lease.Namespace, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now, next := time.Now(), map[string]sighting{}
	for _, l := range list.Items {
		s := sighting{version: l.ResourceVersion + " " + l.Spec.RenewTime.String(), commit: l.Annotations[annotationCommit], told: l.Annotations[annotationTold], at: now}
		if l.Spec.HolderIdentity != nil {
			s.holder = *l.Spec.HolderIdentity
		}
		if was, known := d.seen[l.Name]; known && was.version == s.version {
			s.at = was.at
		}
		next[l.Name] = s
	}
	d.seen, d.looked = next, now
	unheld := 0
	for shard := range d.lease.Shards {
		if !next[d.name(shardName(shard))].alive(now) {
			unheld++
		}
	}
	d.unheld.Set(float64(unheld))
	return nil
}

// daemons returns the names of those that are alive.
func (d *division) daemons() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []string
	for name, s := range d.seen {
		if s.alive(d.looked) && name == d.name(daemonName(s.holder)) {
			list = append(list, s.holder)
		}
	}
	return list
}

// accepted returns the commit that the daemon has in force that leads; "" where that is unknown.
func (d *division) accepted() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[d.name(daemonName(d.seen[d.name("lead")].holder))].commit
}

// daemonName is the name of a daemon's own lease. Not every identity is the name of an object.
func daemonName(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return "daemon-" + hex.EncodeToString(sum[:8])
}

// heartbeat is the lease by which the others know that this daemon is there.
type heartbeat struct {
	*division
	// pod owns the lease, so that it goes with it; nil outside of a pod.
	pod  *metav1.OwnerReference
	last *coordinationv1.Lease
}

// beat renews it.
func (h *heartbeat) beat(ctx context.Context, commit, told string) error {
	ctx, cancel := context.WithTimeout(ctx, leaseRenew)
	defer cancel()
	api, name := h.kube.CoordinationV1().Leases(h.lease.Namespace), h.name(daemonName(h.identity))
	next := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: h.lease.Namespace}}
	if h.pod != nil {
		next.OwnerReferences = []metav1.OwnerReference{*h.pod}
	}
	if h.last == nil {
		found, err := api.Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read Lease %s: %w", name, err)
		}
		if err == nil {
			h.last = found
		}
	}
	seconds, now := int32(leaseDuration/time.Second), metav1.NewMicroTime(time.Now())
	next.Annotations = map[string]string{annotationCommit: commit, annotationTold: told}
	next.Spec = coordinationv1.LeaseSpec{HolderIdentity: &h.identity, LeaseDurationSeconds: &seconds, RenewTime: &now}
	var err error
	if h.last == nil {
		h.last, err = api.Create(ctx, next, metav1.CreateOptions{})
	} else {
		next.ResourceVersion, next.UID = h.last.ResourceVersion, h.last.UID
		h.last, err = api.Update(ctx, next, metav1.UpdateOptions{})
	}
	if err != nil {
		h.last = nil // read again
		return fmt.Errorf("write Lease %s, by which the other daemons know of this one: %w", name, err)
	}
	return nil
}

// end tells the others at once that this daemon is not there any more.
func (h *heartbeat) end(ctx context.Context) {
	if h.last == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), markLimit)
	defer cancel()
	h.last.Spec.HolderIdentity = nil
	_, err := h.kube.CoordinationV1().Leases(h.lease.Namespace).Update(ctx, h.last, metav1.UpdateOptions{})
	if err != nil {
		h.log.Warn("the other daemons take this one's shards only when its lease has expired", "error", err.Error())
	}
}

// ownPod refers to quorate's own pod; nil outside of one, or if it cannot be read.
func (d *division) ownPod(ctx context.Context) *metav1.OwnerReference {
	namespace, pod := ownPod()
	if pod == "" || namespace != d.lease.Namespace {
		return nil
	}
	own, err := d.kube.CoreV1().Pods(namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		d.log.Warn("this daemon's own Lease is left behind when its pod is gone", "error", err.Error())
		return nil
	}
	return &metav1.OwnerReference{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod", Name: own.Name, UID: own.UID}
}
