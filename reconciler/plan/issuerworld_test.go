package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/issuers"
	"github.com/quorate/quorate/reconciler/plan/transport"
	"github.com/quorate/quorate/reconciler/plan/trust"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// issuerWorld is a cluster of three members whose issuer changes, and back: real certificates of quorate's
// and of another program's, in Secrets. What a member trusts it has read when it started; what it shows is
// what its kubelet has brought into its pod; a client takes up what it is to trust, and then to show, at
// some time within the overlap.
type issuerWorld struct {
	*certWorld
	// template is what the StatefulSet makes, and closed what that of the last finished roll does.
	template, closed issuerTemplate
	pods             [3]issuerPod
	changedAt        time.Time
	client           issuerClient
	// doctor spoils what quorate sees.
	doctor func(*state.Observed)
}

// issuerTemplate is whose certificates a member shows, and what it trusts.
type issuerTemplate struct {
	mode  schema.TLSMode
	trust string
}

func (t issuerTemplate) String() string { return "t-" + string(t.mode) + "-" + t.trust }

// issuerPod is a pod, and the member in it.
type issuerPod struct {
	issuerTemplate
	certPod
}

// issuerClient is a client of the cluster: whose certificate it shows, whom it trusts, and when it takes up
// what it is to take up.
type issuerClient struct {
	mode  schema.TLSMode
	roots []byte
	due   time.Time
	goal  string
}

func newIssuerWorld(mode schema.TLSMode, overlap time.Duration, seed uint64) *issuerWorld {
	w := &issuerWorld{certWorld: &certWorld{
		now: noon, partition: 3, leader: 2, secrets: map[string]*corev1.Secret{}, random: rand.New(rand.NewPCG(seed, 1)), applied: "/",
		verified: newVerifier(),
	}}
	w.c.Metadata = schema.Metadata{Name: "orders", Namespace: "db"}
	w.c.Spec = schema.ClusterSpec{Version: oldVersion, Replicas: 3}
	w.c.Spec.TLS = schema.TLSSpec{
		Mode: mode, Overlap: &metav1.Duration{Duration: overlap},
		Secrets: schema.TLSSecretNames{Server: "their-server", Peer: "their-peer", Client: "their-client"},
	}
	w.c.Spec.TLS.Lifetimes.Certificate = &metav1.Duration{Duration: 30 * 24 * time.Hour}
	made, err := certs.Issue(w.others(), "cluster.local", nil, w.now)
	if err != nil {
		panic(err)
	}
	for _, s := range made {
		name := strings.Replace(s.Name, "orders", "their", 1)
		w.put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "db"}, Type: s.Type, Data: s.Data})
	}
	if mode == schema.TLSManaged {
		made, err := certs.Issue(w.c, "cluster.local", nil, w.now)
		if err != nil {
			panic(err)
		}
		w.put(made...)
	}
	w.template = issuerTemplate{mode: mode}
	w.closed = w.template
	for i := range w.pods {
		w.startPod(i)
	}
	w.client = issuerClient{mode: mode, roots: w.pods[0].server.Data["ca.crt"]}
	return w
}

// others is the cluster as the other program issues certificates for it, which outlive each history.
func (w *issuerWorld) others() schema.EtcdCluster {
	c := certs.ManagedBy(w.c)
	c.Spec.TLS.Lifetimes.Certificate = &metav1.Duration{Duration: 5 * 365 * 24 * time.Hour}
	return c
}

// put writes Secrets.
func (w *issuerWorld) put(all ...*corev1.Secret) {
	for _, s := range all {
		s = s.DeepCopy()
		if s.CreationTimestamp.IsZero() {
			s.CreationTimestamp = metav1.NewTime(w.now)
		}
		w.secrets[s.Name] = s
	}
}

// mounted are the Secrets that a pod of a mode mounts.
func (w *issuerWorld) mounted(mode schema.TLSMode) (server, peer *corev1.Secret) {
	if mode == schema.TLSSecrets {
		return w.secrets["their-server"], w.secrets["their-peer"]
	}
	return w.secrets["orders-server"], w.secrets["orders-peer"]
}

// startPod makes a new pod: its kubelet mounts what there is, and the member reads what it trusts.
func (w *issuerWorld) startPod(i int) {
	p := issuerPod{issuerTemplate: w.template}
	if int32(i) < w.partition {
		p.issuerTemplate = w.closed
	}
	p.synced = w.now
	if p.server, p.peer = w.mounted(p.mode); p.server == nil || p.peer == nil {
		panic("I22: a pod mounts a Secret that is gone")
	}
	w.pods[i] = p
	w.bootPod(i)
}

// bootPod starts the member in its pod, which reads what it trusts.
func (w *issuerWorld) bootPod(i int) {
	p := &w.pods[i]
	p.clients, p.peers = p.server.Data["ca.crt"], p.peer.Data["ca.crt"]
	if name := p.issuerTemplate.trust; name != "" {
		if w.secrets[name] == nil {
			panic("I22: a pod mounts a Secret that is gone")
		}
		p.clients, p.peers = w.secrets[name].Data[naming.TrustedClientsKey], w.secrets[name].Data[naming.TrustedPeersKey]
	}
}

// shown is what a client of a mode shows.
func (w *issuerWorld) shown(mode schema.TLSMode) *corev1.Secret {
	if mode == schema.TLSSecrets {
		return w.secrets["their-client"]
	}
	return w.secrets["orders-client"]
}

// judge wants each member to trust what every other one and every client shows, and clients what members
// show: I22. quorate asks each member with the certificate of the issuer whose certificates that shows.
func (w *issuerWorld) judge() string {
	for i := range w.pods {
		for j := range w.pods {
			if !w.trusts(w.pods[j].peers, w.pods[i].peer) {
				return fmt.Sprintf("I22: member %d does not trust what member %d shows", j, i)
			}
		}
		own := w.shown(w.pods[i].mode)
		for who, c := range map[string]struct {
			shown *corev1.Secret
			roots []byte
		}{"a client": {w.shown(w.client.mode), w.client.roots}, "quorate": {own, own.Data["ca.crt"]}} {
			if c.shown == nil || !w.trusts(w.pods[i].clients, c.shown) {
				return fmt.Sprintf("I22: member %d does not trust what %s shows", i, who)
			}
			if !w.trusts(c.roots, w.pods[i].server) {
				return fmt.Sprintf("I22: %s does not trust what member %d shows", who, i)
			}
		}
	}
	return ""
}

// happens lets time go by: kubelets and clients take up what has changed, a member may crash, and the other
// program may renew a certificate.
func (w *issuerWorld) happens(by time.Duration) {
	w.now = w.now.Add(by)
	for i := range w.pods {
		p := &w.pods[i]
		server, peer := w.mounted(p.mode)
		if p.server == server && p.peer == peer {
			p.synced = w.now
		} else if w.now.Sub(p.synced) >= kubeletDelay || w.random.IntN(4) == 0 && !w.brisk {
			p.server, p.peer, p.synced = server, peer, w.now
		}
	}
	w.follow()
	switch w.random.IntN(24) {
	case 0, 1, 2:
		i := w.random.IntN(3)
		w.trace = append(w.trace, fmt.Sprintf("member %d crashes", i))
		w.bootPod(i)
	case 3:
		w.renewTheirs()
	}
}

// renewTheirs issues a certificate of the other program's anew, by the same authority.
func (w *issuerWorld) renewTheirs() {
	theirs := map[string]*corev1.Secret{}
	for name, s := range w.secrets {
		if own, is := strings.CutPrefix(name, "their-"); is {
			s = s.DeepCopy()
			s.Name, s.Labels = "orders-"+own, naming.ObjectLabels(w.c)
			theirs[s.Name] = s
		}
	}
	name := []string{"server", "peer", "client"}[w.random.IntN(3)]
	renewed, err := certs.Reissue(w.others(), "cluster.local", "orders-"+name, theirs, w.now)
	if err != nil {
		panic(err)
	}
	s := w.secrets["their-"+name].DeepCopy()
	s.Data, s.CreationTimestamp = renewed.Data, metav1.NewTime(w.now)
	w.put(s)
}

// follow has the client take up what it is to take up: both issuers once its Secret, or what the members
// mount, says so, and a certificate of the new one once all members show such.
func (w *issuerWorld) follow() {
	mode, roots, since := w.client.mode, w.client.roots, w.now
	if both := w.secrets[w.template.trust]; both != nil && w.closed == w.template {
		mode, roots, since = w.template.mode, both.Data[naming.TrustedClientsKey], w.changedAt
	}
	if own := w.secrets["orders-client"]; own != nil && w.client.mode == schema.TLSManaged && mode == schema.TLSManaged {
		roots = own.Data["ca.crt"]
	}
	if mode == w.client.mode && string(roots) == string(w.client.roots) {
		w.client.goal = ""
		return
	}
	if goal := string(mode) + string(roots); goal != w.client.goal {
		w.client.goal, w.client.due = goal, since.Add(time.Duration(w.random.Int64N(int64(w.c.Spec.TLS.OverlapTime())+1)))
	}
	if !w.now.Before(w.client.due) {
		w.client.mode, w.client.roots, w.client.goal = mode, roots, ""
	}
}

// observed is what quorate sees.
func (w *issuerWorld) observed() (state.Desired, state.Observed) {
	s := healthy(3)
	o := s.Observed
	live := w.c
	live.Spec.TLS.Mode = w.template.mode
	status, both := w.check(live)
	o.Certificates = state.Certificates{Missing: status.Missing, Problems: status.Problems, MissingSANs: status.MissingSANs, Due: status.Due, Rotation: status.Rotation}
	i := &state.Issuers{
		Both: both.Both, Alone: both.Managed, Told: both.Told, Left: both.Left, Mounted: w.template.trust,
		Problems: both.Other.Problems, Missing: both.Other.Missing, MissingSANs: both.Other.MissingSANs, Due: both.Other.Due,
		Mixed: slices.Contains(both.Mixed[w.template.mode], w.template.trust),
	}
	if w.c.Spec.TLS.Mode == schema.TLSSecrets {
		i.Alone = both.Named
	}
	for _, name := range []string{"their-server", "their-peer", "their-client"} {
		if at := w.secrets[name].CreationTimestamp.Time; at.After(i.NamedAt) {
			i.NamedAt = at
		}
	}
	var kept []*corev1.Secret
	for _, secret := range w.secrets {
		if certs.KeepsTrust(w.c, secret) {
			i.Made, kept = append(i.Made, secret.Name), append(kept, secret)
		}
	}
	slices.SortFunc(kept, func(a, b *corev1.Secret) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	mounts, shows := []string{w.template.trust}, []schema.TLSMode{}
	o.Set.Template, o.Set.CurrentTemplate, o.Set.Partition, o.Set.ChangedAt = w.template.String(), w.closed.String(), w.partition, w.changedAt
	for n := range o.Pods {
		p := &w.pods[o.Pods[n].Ordinal]
		o.Pods[n].Template = p.String()
		o.Pods[n].Created, o.Pods[n].ReadySince = w.now.Add(-time.Hour), w.now.Add(-time.Hour)
		mounts, shows = append(mounts, p.issuerTemplate.trust), append(shows, p.mode)
	}
	i.Halfway = !slices.ContainsFunc(mounts, func(name string) bool { return name != i.Both }) &&
		w.template.mode != w.c.Spec.TLS.Mode && slices.Contains(shows, w.c.Spec.TLS.Mode)
	o.Transport = state.Transport{Own: w.template.mode}
	if w.template.mode == schema.TLSSecrets {
		o.Transport.Server, o.Transport.Peer = "their-server", "their-peer"
		o.Certificates.Trust = w.bundles(kept, mounts, i.NamedAt)
	} else {
		r := o.Certificates.Rotation
		r.Set = w.template.trust
		for _, name := range mounts {
			if name != "" && !slices.Contains(r.Mounted, name) {
				r.Mounted = append(r.Mounted, name)
			}
		}
	}
	o.Certificates.Issuers = i
	for n := range o.Rounds {
		o.Rounds[n].At = w.now.Add(time.Duration(n-1) * time.Second)
		for m := range o.Rounds[n].Members {
			o.Rounds[n].Members[m].Leader = fmt.Sprintf("m%d", w.leader)
		}
	}
	if w.doctor != nil {
		w.doctor(&o)
	}
	d := s.Desired
	d.Spec.TLS = w.c.Spec.TLS
	d.SpecHash = string(w.c.Spec.TLS.Mode)
	o.Record.Applied = &state.Applied{SpecHash: w.applied, Version: oldVersion}
	next := issuerTemplate{transport.Of(d, o, w.now).Template.Own, ""}
	switch a := issuers.Of(d.Spec.TLS, o, w.now); {
	case a.Changing:
		next.trust = a.Trust
	case w.template.mode == schema.TLSManaged:
		next.trust = trust.Of(d.Spec.TLS, o, w.now).Trust
	default:
		next.trust = o.Certificates.Trust.Target(w.now)
	}
	d.Trust, d.Template = next.trust, next.String()
	return d, o
}

// check checks the certificates of both issuers.
func (w *issuerWorld) check(live schema.EtcdCluster) (certs.Status, certs.Issuers) {
	type checkOf struct{ mode schema.TLSMode }
	key := checkOf{live.Spec.TLS.Mode}
	status := memoize(w.certWorld, key, func() certs.Status { return certs.Check(live, "cluster.local", w.secrets, w.now) })
	type issuersOf checkOf
	both := memoize(w.certWorld, issuersOf(key), func() certs.Issuers {
		return certs.CheckIssuers(live, "cluster.local", w.secrets, w.now)
	})
	status.Rotation = cloneRotation(status.Rotation) // what pods mount is added to it
	return status, both
}

// bundles is what quorate sees of what members trust while they show certificates of the other program.
func (w *issuerWorld) bundles(kept []*corev1.Secret, mounts []string, changedAt time.Time) state.Trust {
	wanted := certs.NamedTrust(certs.NamedBy(w.c), w.secrets).Name
	t := state.Trust{Wanted: wanted, ChangedAt: changedAt, Mounted: w.template.trust}
	for _, s := range kept {
		t.Kept = append(t.Kept, s.Name)
	}
	for _, name := range mounts {
		if name == "" {
			if name = wanted; len(kept) > 0 {
				name = kept[0].Name
			}
		}
		if !slices.Contains(t.Running, name) {
			t.Running = append(t.Running, name)
		}
	}
	for _, name := range t.Running {
		if s := w.secrets[name]; s != nil {
			t.Refused = append(t.Refused, w.refused(certs.NamedBy(w.c), s)...)
		}
	}
	return t
}

// pass is one pass of quorate, which may be killed between any two of its calls.
func (w *issuerWorld) pass() (quiet bool) {
	d, o := w.observed()
	return passOf(Decide(d, o, w.now), w.now, w.random, &w.trace, func(act action.Action) []func() { return w.calls(d, act) })
}

// calls are those that the executor makes for an action, in its order.
func (w *issuerWorld) calls(d state.Desired, act action.Action) (calls []func()) {
	own := map[string]*corev1.Secret{}
	for name, s := range w.secrets {
		if naming.Owns(s, w.c) {
			own[name] = s
		}
	}
	managed := certs.ManagedBy(w.c)
	writes := func(all []*corev1.Secret) {
		for _, s := range all {
			calls = append(calls, func() { w.put(s) })
		}
	}
	removes := func(names ...string) {
		for _, name := range names {
			calls = append(calls, func() { delete(w.secrets, name) })
		}
	}
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	changes := func(f func()) { calls = append(calls, func() { w.changedAt = w.now; f() }) }
	next := issuerTemplate{trust: d.Trust, mode: schema.TLSManaged}
	if strings.HasPrefix(d.Template, "t-"+string(schema.TLSSecrets)) {
		next.mode = schema.TLSSecrets
	}
	switch a := act.(type) {
	case action.IssueCertificates:
		made, err := certs.Issue(managed, "cluster.local", own, w.now)
		must(err)
		writes(made)
	case action.RenewCertificates:
		for _, name := range a.Secrets {
			issued, err := certs.Reissue(managed, "cluster.local", name, own, w.now)
			must(err)
			writes([]*corev1.Secret{issued})
		}
	case action.PublishTrust:
		trusted := certs.UnitedTrust(managed, "cluster.local", w.secrets)
		if a.Bundle == state.BundleIssuers {
			writes(certs.UnitedBundles(managed, "cluster.local", w.secrets))
		} else {
			made, err := certs.Trust(managed, "cluster.local", own, a.Secret)
			must(err)
			trusted = made
		}
		if w.secrets[a.Secret] == nil {
			writes([]*corev1.Secret{trusted})
		}
	case action.KeepTrust:
		removes(a.Drop...)
		if kept := certs.NamedTrust(certs.NamedBy(w.c), w.secrets); w.secrets[kept.Name] == nil {
			writes([]*corev1.Secret{kept})
		}
	case action.RetireAuthorities:
		if a.Keep == state.ByOther {
			for _, l := range certs.Leaves(w.c, "cluster.local") {
				removes(l.Secret)
			}
			removes("orders-peer-ca", "orders-ca")
			break
		}
		update, _, _ := certs.Retire(managed, "cluster.local", own, a.Keep)
		writes(update)
		for _, name := range slices.Sorted(maps.Keys(own)) {
			if naming.IsTrust("orders", name) && name != a.Trust {
				removes(name)
			}
		}
	case action.StartRoll:
		changes(func() { w.template, w.partition = next, a.Partition })
	case action.MoveLeader:
		calls = append(calls, func() { w.leader = naming.Ordinal(a.To) })
	case action.RestartMember:
		changes(func() {
			if a.ByDeletion {
				w.startPod(int(a.Ordinal))
			}
			w.partition = a.Partition
			for i := 2; i >= int(a.Partition); i-- {
				if w.pods[i].issuerTemplate != w.template {
					w.startPod(i)
				}
			}
			if !slices.ContainsFunc(w.pods[:], func(p issuerPod) bool { return p.issuerTemplate != w.template }) {
				w.closed = w.template
			}
		})
	case action.ResizeSet:
		changes(func() { w.partition = a.Partition })
	case action.EndRoll:
		changes(func() { w.partition = a.Replicas })
	case action.RecordApplied:
		calls = append(calls, func() { w.applied = a.SpecHash })
	default:
		panic(fmt.Sprintf("the world does not know %T", act))
	}
	return calls
}

// play lets the mode be changed, and changed again at any time, and all come to rest. It returns what was
// broken, or "".
func (w *issuerWorld) play(events int) string {
	flips := 25 + w.random.IntN(40)
	for n := range events {
		if n == 0 || w.random.IntN(flips) == 0 {
			w.c.Spec.TLS.Mode = map[bool]schema.TLSMode{true: schema.TLSManaged, false: schema.TLSSecrets}[w.c.Spec.TLS.Mode == schema.TLSSecrets]
			w.trace = append(w.trace, "Git asks for "+string(w.c.Spec.TLS.Mode))
		}
		by := []time.Duration{time.Second, 20 * time.Second, time.Minute, 5 * time.Minute, time.Hour, 30 * time.Hour}[w.random.IntN(6)]
		if w.brisk {
			by = min(by, 2*time.Second)
		}
		w.happens(by)
		if broken := w.judge(); broken != "" {
			return broken
		}
		if w.random.IntN(4) > 0 {
			w.pass()
			w.follow()
			if broken := w.judge(); broken != "" {
				return broken
			}
		}
	}
	w.trace = append(w.trace, "nothing is asked for any more")
	for range 400 {
		w.happens(time.Hour)
		quiet := w.pass()
		w.follow()
		if broken := w.judge(); broken != "" {
			return broken
		}
		if quiet {
			return w.unsatisfied()
		}
	}
	return "liveness: no rest"
}

// unsatisfied is in what the cluster at rest is not as Git says, or "".
func (w *issuerWorld) unsatisfied() string {
	if w.template.mode != w.c.Spec.TLS.Mode {
		return "liveness: at rest with the certificates of the other issuer"
	}
	for i := range w.pods {
		if own, other := w.shown(w.c.Spec.TLS.Mode), w.shown(map[bool]schema.TLSMode{true: schema.TLSManaged, false: schema.TLSSecrets}[w.c.Spec.TLS.Mode == schema.TLSSecrets]); own == nil ||
			!w.trusts(w.pods[i].clients, own) || other != nil && w.trusts(w.pods[i].clients, other) {
			return fmt.Sprintf("liveness: at rest, and member %d trusts another issuer", i)
		}
	}
	trusts := 0
	for name, s := range w.secrets {
		if naming.IsTrust("orders", name) {
			trusts++
		} else if naming.Owns(s, w.c) && w.c.Spec.TLS.Mode == schema.TLSSecrets {
			return "liveness: at rest with the Secret " + name + " of quorate's"
		} else if naming.Owns(s, w.c) && strings.Count(string(s.Data["ca.crt"]), "BEGIN") != 1 {
			return "liveness: at rest, and " + name + " says to trust another issuer"
		}
	}
	if trusts > 1 {
		return "liveness: at rest with what members trusted once"
	}
	return ""
}

// playOrPanic is play that takes a panic for something that is broken, too.
func (w *issuerWorld) playOrPanic(events int) (broken string) {
	defer func() {
		if r := recover(); r != nil {
			broken = fmt.Sprint("panic: ", r)
		}
	}()
	return w.play(events)
}

// issuerHistory is a world by its seed.
func issuerHistory(seed uint64) *issuerWorld {
	modes := []schema.TLSMode{schema.TLSManaged, schema.TLSSecrets}
	w := newIssuerWorld(modes[seed%2], []time.Duration{0, 3 * time.Minute, 24 * time.Hour}[seed%3], seed)
	w.brisk = seed%4 == 3
	return w
}

// 599: whatever mode Git asks for meanwhile, members that crash, certificates that are renewed, kubelets and
// clients that are slow and a quorate that is killed between any two calls: at each moment each member trusts
// what all the others and the clients show, and in the end the issuer alone that Git asks for is trusted.
func TestCertificatesOfBothIssuersAreTrustedAtEachMoment(t *testing.T) {
	dropped, seeds := 0, histories(18, 6)
	for seed := range uint64(seeds) {
		w := issuerHistory(seed)
		if broken := w.playOrPanic(120); broken != "" {
			t.Fatalf("seed %d: %s\n\t%s", seed, broken, strings.Join(w.trace, "\n\t"))
		}
		dropped += strings.Count(strings.Join(w.trace, "\n"), " alone; the StatefulSet gets")
	}
	if dropped < seeds {
		t.Errorf("the issuer has changed %d times only: the histories show nothing", dropped)
	}
}

// 599: a quorate that takes one phase before another, or does not wait, is caught.
func TestSwappedPhasesOfTheIssuerAreCaught(t *testing.T) {
	over := func(o *state.Observed) {
		o.Set.CurrentTemplate = o.Set.Template
		for i := range o.Pods {
			o.Pods[i].Template = o.Set.Template
		}
	}
	for name, doctor := range map[string]func(*state.Observed){
		"certificates before members trust both": func(o *state.Observed) { o.Certificates.Issuers.Mounted = o.Certificates.Issuers.Both },
		"one issuer alone before the certificates": func(o *state.Observed) {
			if i := o.Certificates.Issuers; i.Mixed {
				i.Mixed = false
			}
		},
		"no overlap":                       func(o *state.Observed) { o.Set.ChangedAt = noon.AddDate(-1, 0, 0) },
		"a roll is over when it has begun": over,
		"taken back before all trust both": func(o *state.Observed) { o.Certificates.Issuers.Halfway = true },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(12) {
				w := issuerHistory(seed)
				w.doctor = doctor
				if broken := w.playOrPanic(120); strings.HasPrefix(strings.TrimPrefix(broken, "panic: "), "I22") {
					return
				}
			}
			t.Error("no history has caught it")
		})
	}
}
