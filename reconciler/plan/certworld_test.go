package plan

import (
	"bytes"
	"crypto/x509"
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
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/trust"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// certWorld is a cluster of three members as far as certificates go: real ones, in Secrets. What a
// member trusts it has read when it started; what it shows is what its kubelet has brought into its
// pod; a client takes up what its Secret says at some time within the overlap.
type certWorld struct {
	c       schema.EtcdCluster
	now     time.Time
	secrets map[string]*corev1.Secret
	pods    [3]certPod
	leader  int32
	// trust is what the template mounts, and current what that of the last finished roll does.
	trust, current string
	partition      int32
	applied        string
	client         certClient
	// copied is the Secret of the application in another namespace, and neighbour a client there.
	// Where that is closed, quorate cannot write it; hasty: it begins the overlap without it.
	copied        *corev1.Secret
	neighbour     certClient
	closed, hasty bool
	// verified and memo keep what is verified and checked once, see certmemo_test.go.
	verified verifier
	memo     secretsMemo
	// doctor spoils what quorate sees.
	doctor func(*state.Observed)
	random *rand.Rand
	// brisk: quorate passes many times before a kubelet takes anything up.
	brisk bool
	trace []string
}

// certPod is a pod, and the member in it.
type certPod struct {
	trust string
	// server and peer are the Secrets as its kubelet has mounted them.
	server, peer   *corev1.Secret
	synced         time.Time
	clients, peers []byte
}

// certClient is a client of the cluster, with its Secret as it has read it.
type certClient struct {
	secret *corev1.Secret
	// due is when it reads its Secret again, once that has changed.
	due time.Time
}

// application is the Secret of the application that is a client.
const application = "orders-client-checkout"

// kubeletDelay is how long a kubelet takes at most to bring a changed Secret into a pod.
const kubeletDelay = 2 * time.Minute

func newCertWorld(overlap time.Duration, seed uint64) *certWorld {
	w := &certWorld{
		now: noon, partition: 3, leader: 2, secrets: map[string]*corev1.Secret{}, verified: newVerifier(),
		random: rand.New(rand.NewPCG(seed, 0)), applied: "/",
	}
	w.c.Metadata = schema.Metadata{Name: "orders", Namespace: "db"}
	w.c.Spec = schema.ClusterSpec{Version: oldVersion, Replicas: 3}
	w.c.Spec.TLS = schema.TLSSpec{Mode: schema.TLSManaged, Overlap: &metav1.Duration{Duration: overlap}}
	w.c.Spec.TLS.Lifetimes.Certificate = &metav1.Duration{Duration: 30 * 24 * time.Hour}
	w.c.Spec.TLS.Clients = []schema.TLSClient{{Name: "checkout", CommonName: "checkout", Namespaces: []string{"web"}}}
	made, err := certs.Issue(w.c, "cluster.local", nil, w.now)
	if err != nil {
		panic(err)
	}
	w.write(made...)
	for i := range w.pods {
		w.start(i)
	}
	app, err := certs.IssueClient(w.c, application, w.secrets, w.now)
	if err != nil {
		panic(err)
	}
	w.write(app)
	w.client.secret = w.secrets[application]
	w.copy()
	w.neighbour.secret = w.copied
	return w
}

// write writes Secrets, and has the client read its own within the overlap.
func (w *certWorld) write(all ...*corev1.Secret) {
	for _, s := range all {
		s = s.DeepCopy()
		if s.CreationTimestamp.IsZero() {
			s.CreationTimestamp = metav1.NewTime(w.now)
		}
		w.secrets[s.Name] = s
		if s.Name == application && w.client.due.IsZero() && w.client.secret != nil {
			w.client.due = w.now.Add(time.Duration(w.random.Int64N(int64(w.c.Spec.TLS.OverlapTime()) + 1)))
		}
	}
}

// copy writes the copy of the application's Secret, which the client there reads within the overlap.
func (w *certWorld) copy() {
	if made := certs.MakeCopy(w.c, w.secrets[application], "web", w.copied); made != nil {
		w.copied = made
		if w.neighbour.due.IsZero() && w.neighbour.secret != nil {
			w.neighbour.due = w.now.Add(time.Duration(w.random.Int64N(int64(w.c.Spec.TLS.OverlapTime()) + 1)))
		}
	}
}

// start makes a new pod: its kubelet mounts what there is, and the member reads what it trusts.
func (w *certWorld) start(i int) {
	p := certPod{trust: w.trust, synced: w.now, server: w.secrets["orders-server"], peer: w.secrets["orders-peer"]}
	if int32(i) < w.partition {
		p.trust = w.current
	}
	w.pods[i] = p
	w.boot(i)
}

// boot starts the member in its pod, which reads what it trusts.
func (w *certWorld) boot(i int) {
	p := &w.pods[i]
	p.clients, p.peers = p.server.Data["ca.crt"], p.peer.Data["ca.crt"]
	if p.trust != "" {
		p.clients, p.peers = w.secrets[p.trust].Data[naming.TrustedClientsKey], w.secrets[p.trust].Data[naming.TrustedPeersKey]
	}
}

// trusts reports whether certificates trust what a Secret holds.
func (w *certWorld) trusts(roots []byte, shown *corev1.Secret) bool {
	return w.verified.trusts(roots, shown.Data[corev1.TLSCertKey], w.now)
}

func (w *certWorld) leaf(s *corev1.Secret) *x509.Certificate {
	return w.verified.certificate(s.Data[corev1.TLSCertKey])
}

// judge wants each member to trust what every other one and every client shows, and clients what
// members show: I22.
func (w *certWorld) judge() string {
	for i := range w.pods {
		for j := range w.pods {
			if !w.trusts(w.pods[j].peers, w.pods[i].peer) {
				return fmt.Sprintf("I22: member %d does not trust what member %d shows", j, i)
			}
		}
		shown := map[string]*corev1.Secret{"a client": w.client.secret, "quorate": w.secrets["orders-client"]}
		if !w.closed {
			shown["a client of another namespace"] = w.neighbour.secret
		}
		for who, secret := range shown {
			if !w.trusts(w.pods[i].clients, secret) {
				return fmt.Sprintf("I22: member %d does not trust what %s shows", i, who)
			}
			if !w.trusts(secret.Data["ca.crt"], w.pods[i].server) {
				return fmt.Sprintf("I22: %s does not trust what member %d shows", who, i)
			}
		}
	}
	return ""
}

// happens lets time go by: kubelets and clients take up what has changed, and a member may crash.
func (w *certWorld) happens(by time.Duration) {
	w.now = w.now.Add(by)
	for i := range w.pods {
		p := &w.pods[i]
		if changed := p.server != w.secrets["orders-server"] || p.peer != w.secrets["orders-peer"]; !changed {
			p.synced = w.now
		} else if w.now.Sub(p.synced) >= kubeletDelay || w.random.IntN(4) == 0 && !w.brisk {
			p.server, p.peer, p.synced = w.secrets["orders-server"], w.secrets["orders-peer"], w.now
		}
	}
	if !w.client.due.IsZero() && !w.now.Before(w.client.due) {
		w.client = certClient{secret: w.secrets[application]}
	}
	if !w.neighbour.due.IsZero() && !w.now.Before(w.neighbour.due) {
		w.neighbour = certClient{secret: w.copied}
	}
	if w.random.IntN(8) == 0 {
		i := w.random.IntN(3)
		w.trace = append(w.trace, fmt.Sprintf("member %d crashes", i))
		w.boot(i)
	}
}

// observed is what quorate sees.
func (w *certWorld) observed() (state.Desired, state.Observed) {
	s := healthy(3)
	s.Desired.Spec.TLS = w.c.Spec.TLS
	status, wanting := w.check()
	o := s.Observed
	o.Certificates = state.Certificates{
		Missing: status.Missing, Problems: status.Problems, MissingSANs: status.MissingSANs, Due: status.Due,
		Rotation: cloneRotation(status.Rotation),
	}
	for _, client := range wanting {
		o.Certificates.Clients = append(o.Certificates.Clients, state.ClientCertificate(client))
	}
	for _, is := range certs.CheckCopies(w.c, w.secrets, wanting, []*corev1.Secret{w.copied}) {
		one := state.ClientCopy{Secret: is.Secret, Namespace: is.Namespace, Why: is.Why}
		if w.closed {
			one.Refused = &state.Refusal{Problem: "it is forbidden", Since: w.now, Until: w.now.Add(time.Minute)}
		}
		o.Certificates.Copies = append(o.Certificates.Copies, one)
	}
	r := o.Certificates.Rotation
	o.Set.Template, o.Set.CurrentTemplate, o.Set.Partition, r.Set = "t-"+w.trust, "t-"+w.current, w.partition, w.trust
	for i := range o.Pods {
		p := &w.pods[o.Pods[i].Ordinal]
		o.Pods[i].Template = "t-" + p.trust
		o.Pods[i].Created, o.Pods[i].ReadySince = w.now.Add(-time.Hour), w.now.Add(-time.Hour)
		if p.trust != "" && !slices.Contains(r.Mounted, p.trust) {
			r.Mounted = append(r.Mounted, p.trust)
		}
	}
	if len(r.Next) > 0 {
		r.Shown = w.handshakes()
	} else if r.Over == "" {
		w.strangers(&o)
	}
	for i := range o.Rounds {
		o.Rounds[i].At = w.now.Add(time.Duration(i-1) * time.Second)
		for m := range o.Rounds[i].Members {
			o.Rounds[i].Members[m].Leader = fmt.Sprintf("m%d", w.leader)
		}
	}
	if w.doctor != nil {
		w.doctor(&o)
	}
	d := s.Desired
	d.SpecHash = "/" + w.c.Spec.TLS.Rotate
	o.Record.Applied = &state.Applied{SpecHash: w.applied, Version: oldVersion}
	d.Trust = trust.Of(d.Spec.TLS, o, w.now).Trust
	d.Template = "t-" + d.Trust
	return d, o
}

// check checks the certificates of members and of applications.
func (w *certWorld) check() (certs.Status, []certs.Wanting) {
	type checkOf struct{ rotate string }
	key := checkOf{w.c.Spec.TLS.Rotate}
	status := memoize(w, key, func() certs.Status { return certs.Check(w.c, "cluster.local", w.secrets, w.now) })
	type clientsOf checkOf
	clients := memoize(w, clientsOf(key), func() certs.Clients { return certs.CheckClients(w.c, w.secrets, w.now) })
	return status, clients.Wanting
}

// refused is what is not trusted of the Secrets by members that trust what is kept.
func (w *certWorld) refused(c schema.EtcdCluster, kept *corev1.Secret) []string {
	type refusedBy struct {
		mode schema.TLSMode
		kept *corev1.Secret
	}
	return memoize(w, refusedBy{c.Spec.TLS.Mode, kept}, func() []string { return certs.Refused(c, w.secrets, kept) })
}

// strangers are what is mounted, and does not trust what the Secrets hold.
func (w *certWorld) strangers(o *state.Observed) {
	r := o.Certificates.Rotation
	for _, name := range slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(r.Mounted), r.Set)))) {
		if s := w.secrets[name]; s != nil && len(w.refused(w.c, s)) > 0 {
			r.Strangers = append(r.Strangers, name)
		}
	}
	if s := w.secrets[r.Set]; s != nil {
		o.Certificates.Trust.Refused = w.refused(w.c, s)
	}
}

// handshakes are what each member does on each port, asked with a certificate of each authority.
func (w *certWorld) handshakes() (all []state.Handshake) {
	for _, peers := range []bool{false, true} {
		asks := map[state.Signer]*corev1.Secret{}
		for _, by := range []state.Signer{state.ByPresent, state.ByNext} {
			if s := w.throwaway(peers, by); s != nil {
				asks[by] = s
			}
		}
		for i := range w.pods {
			h := state.Handshake{Member: naming.Member("orders", int32(i)), Port: "client", Refuses: map[state.Signer]string{}}
			roots, mine := w.pods[i].clients, w.pods[i].server
			if peers {
				h.Port, roots, mine = "peer", w.pods[i].peers, w.pods[i].peer
			}
			for by, s := range asks {
				if !w.trusts(roots, s) {
					h.Refuses[by] = "unknown authority"
				}
			}
			h.By = w.signerOf(peers, w.leaf(mine))
			all = append(all, h)
		}
	}
	return all
}

// throwaway is a certificate of an authority for a handshake, nil where that cannot sign. It is used again for half
// of its ten minutes.
func (w *certWorld) throwaway(peers bool, by state.Signer) *corev1.Secret {
	type throwawayOf struct {
		peers bool
		by    state.Signer
		in    time.Time
	}
	return memoize(w, throwawayOf{peers, by, w.now.Truncate(5 * time.Minute)}, func() *corev1.Secret {
		s, err := certs.Throwaway(w.c, "cluster.local", w.secrets, peers, by, w.now)
		if err != nil {
			return nil
		}
		return s
	})
}

// signerOf is which of the authorities has signed a certificate.
func (w *certWorld) signerOf(peers bool, leaf *x509.Certificate) state.Signer {
	type signerOf struct {
		peers bool
		leaf  *x509.Certificate
	}
	return memoize(w, signerOf{peers, leaf}, func() state.Signer {
		return certs.SignerOf(w.c, "cluster.local", w.secrets, peers, leaf)
	})
}

// pass is one pass of quorate, which may be killed between any two of its calls.
func (w *certWorld) pass() (quiet bool) {
	d, o := w.observed()
	return passOf(Decide(d, o, w.now), w.now, w.random, &w.trace, func(act action.Action) []func() { return w.calls(d, act) })
}

// passOf carries out the first step of a plan, by the calls that the executor makes for it. quorate may
// be killed between any two of these.
func passOf(p decision.Plan, now time.Time, random *rand.Rand, trace *[]string, callsOf func(action.Action) []func()) (quiet bool) {
	switch {
	case p.Hold != nil:
		if text := p.Hold.String(); len(*trace) == 0 || (*trace)[len(*trace)-1] != text {
			*trace = append(*trace, text)
		}
		return false
	case len(p.Steps) == 0:
		return true
	}
	*trace = append(*trace, now.Format(time.DateTime)+" "+p.Steps[0].String())
	calls := callsOf(p.Steps[0].Action)
	if random.IntN(3) == 0 {
		calls = calls[:random.IntN(len(calls)+1)]
		*trace = append(*trace, fmt.Sprintf("  and is killed after %d calls", len(calls)))
	}
	for _, call := range calls {
		call()
	}
	return false
}

// calls are those that the executor makes for an action, in its order.
func (w *certWorld) calls(d state.Desired, act action.Action) (calls []func()) {
	writes := func(all []*corev1.Secret) {
		for _, s := range all {
			calls = append(calls, func() { w.write(s) })
		}
	}
	removes := func(name string) { calls = append(calls, func() { delete(w.secrets, name) }) }
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	switch a := act.(type) {
	case action.MakeAuthorities:
		made, err := certs.NextAuthorities(w.c, "cluster.local", w.secrets, w.now)
		must(err)
		writes(made)
	case action.PublishTrust:
		trusted, err := certs.Trust(w.c, "cluster.local", w.secrets, a.Secret)
		must(err)
		if a.Bundle != "" {
			writes(certs.Bundles(w.c, "cluster.local", w.secrets, a.Bundle))
		}
		if w.secrets[a.Secret] == nil {
			if !w.closed && !w.hasty {
				calls = append(calls, w.copy)
			}
			writes([]*corev1.Secret{trusted})
		}
	case action.SwitchCertificates:
		issued, err := certs.IssueBy(w.c, "cluster.local", w.secrets, a.By, w.now)
		must(err)
		if a.Against != "" {
			removes(a.Against)
		}
		writes(issued)
	case action.RetireAuthorities:
		update, create, remove := certs.Retire(w.c, "cluster.local", w.secrets, a.Keep)
		writes(slices.Concat(update, create))
		for _, name := range slices.Sorted(maps.Keys(w.secrets)) {
			if naming.IsTrust("orders", name) && name != a.Trust {
				remove = append(remove, name)
			}
		}
		for _, name := range remove {
			removes(name)
		}
	case action.RenewCertificates:
		for _, name := range a.Secrets {
			issued, err := certs.Reissue(w.c, "cluster.local", name, w.secrets, w.now)
			must(err)
			writes([]*corev1.Secret{issued})
		}
	case action.IssueClientCertificates:
		for _, name := range a.Secrets {
			issued, err := certs.IssueClient(w.c, name, w.secrets, w.now)
			must(err)
			writes([]*corev1.Secret{issued})
		}
	case action.CopyCertificate:
		calls = append(calls, w.copy)
	case action.StartRoll:
		calls = append(calls, func() { w.trust, w.partition = d.Trust, a.Partition })
	case action.MoveLeader:
		calls = append(calls, func() { w.leader = naming.Ordinal(a.To) })
	case action.RestartMember:
		calls = append(calls, func() {
			if a.ByDeletion {
				w.start(int(a.Ordinal))
			}
			w.partition = a.Partition
			for i := 2; i >= int(a.Partition); i-- {
				if w.pods[i].trust != w.trust {
					w.start(i)
				}
			}
			if !slices.ContainsFunc(w.pods[:], func(p certPod) bool { return p.trust != w.trust }) {
				w.current = w.trust
			}
		})
	case action.ResizeSet:
		calls = append(calls, func() { w.partition = a.Partition })
	case action.EndRoll:
		calls = append(calls, func() { w.partition = a.Replicas })
	case action.RecordApplied:
		calls = append(calls, func() { w.applied = a.SpecHash })
	default:
		panic(fmt.Sprintf("the world does not know %T", act))
	}
	return calls
}

// play lets a word be asked for, and others after it, and all come to rest. It returns what was
// broken, or "".
func (w *certWorld) play(events int) string {
	words := []string{"2026-12", "", "2027-01", "2026-12"}
	for n := range events {
		if n == 0 || w.random.IntN(60) == 0 {
			w.c.Spec.TLS.Rotate = words[w.random.IntN(len(words))]
			w.trace = append(w.trace, fmt.Sprintf("Git asks for %q", w.c.Spec.TLS.Rotate))
		}
		by := []time.Duration{time.Second, 20 * time.Second, time.Minute, 5 * time.Minute, time.Hour, 40 * time.Hour}[w.random.IntN(6)]
		if w.brisk {
			by = min(by, 2*time.Second)
		}
		w.happens(by)
		if broken := w.judge(); broken != "" {
			return broken
		}
		if w.random.IntN(4) > 0 {
			w.pass()
			if broken := w.judge(); broken != "" {
				return broken
			}
		}
	}
	w.trace = append(w.trace, "nothing is asked for any more")
	for range 400 {
		w.happens(time.Hour)
		quiet := w.pass()
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
func (w *certWorld) unsatisfied() string {
	_, o := w.observed()
	r := o.Certificates.Rotation
	word := w.c.Spec.TLS.Rotate
	switch {
	case word != "" && r.Word != word:
		return fmt.Sprintf("liveness: at rest with authorities of %q, and Git asks for %q", r.Word, word)
	case len(r.Next) > 0:
		return "liveness: at rest in the midst of a change"
	case !w.closed && certs.MakeCopy(w.c, w.secrets[application], "web", w.copied) != nil:
		return "liveness: at rest with a copy of something else"
	case len(r.Trusts) > 1:
		return "liveness: at rest with what members trusted once"
	}
	for i := range w.pods {
		for _, text := range [][]byte{w.pods[i].clients, w.pods[i].peers} {
			if bytes.Count(text, []byte("BEGIN CERTIFICATE")) != 1 && w.trust != "" {
				return fmt.Sprintf("liveness: at rest, and member %d still trusts another authority", i)
			}
		}
	}
	return ""
}

// 561: whatever Git asks for meanwhile, members that crash, kubelets and clients that are slow and a
// quorate that is killed between any two calls: at each moment each member trusts what all the others
// and the clients show, and in the end only the authorities that Git asks for are trusted.
func TestCertificatesOfAllAreTrustedAtEachMoment(t *testing.T) {
	rotated, seeds := 0, histories(36, 6)
	for seed := range uint64(seeds) {
		w := newCertWorld([]time.Duration{0, 3 * time.Minute, 24 * time.Hour}[seed%3], seed)
		w.brisk, w.closed = seed%4 == 3, seed%5 == 4
		if w.c.Spec.TLS.OverlapTime() == 0 {
			w.client, w.neighbour = certClient{secret: w.secrets[application]}, certClient{secret: w.copied}
		}
		if broken := w.play(120); broken != "" {
			t.Fatalf("seed %d: %s\n\t%s", seed, broken, strings.Join(w.trace, "\n\t"))
		}
		rotated += strings.Count(strings.Join(w.trace, "\n"), "delete the authorities from before")
	}
	if rotated < 20*seeds/36 {
		t.Errorf("the authorities have changed %d times only: the histories show nothing", rotated)
	}
}

// 562: a quorate that takes one phase before another, or does not wait, is caught.
func TestSwappedPhasesOfCertificatesAreCaught(t *testing.T) {
	for name, doctor := range map[string]func(*state.Observed){
		"certificates before members trust both": func(o *state.Observed) {
			r := o.Certificates.Rotation
			if len(r.Next) > 0 && (r.Set == r.Old || r.Set == "") {
				r.Set, o.Set.Template, o.Set.CurrentTemplate = r.Both, "t-"+r.Both, "t-"+r.Both
				for i := range o.Pods {
					o.Pods[i].Template = o.Set.Template
				}
				r.Shown = proven(o)
			}
		},
		"one authority alone before the certificates": func(o *state.Observed) {
			r := o.Certificates.Rotation
			for i := range r.Leaves {
				r.Leaves[i].By = state.ByNext
			}
			r.Shown = proven(o)
		},
		"no overlap": func(o *state.Observed) {
			for name := range o.Certificates.Rotation.Trusts {
				o.Certificates.Rotation.Trusts[name] = noon.AddDate(-1, 0, 0)
			}
		},
		"no handshake": func(o *state.Observed) { o.Certificates.Rotation.Shown = proven(o) },
		"a roll is over when it has begun": func(o *state.Observed) {
			o.Set.CurrentTemplate = o.Set.Template
			for i := range o.Pods {
				o.Pods[i].Template = o.Set.Template
			}
			o.Certificates.Rotation.Shown = proven(o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(16) {
				w := newCertWorld([]time.Duration{0, time.Hour}[seed%2], seed)
				w.doctor, w.brisk = doctor, seed%4 < 2
				if broken := w.playOrPanic(120); strings.HasPrefix(broken, "I22") {
					return
				}
			}
			t.Error("no history has caught it")
		})
	}
}

// 499: clients of other namespaces have the whole overlap, also where quorate is away right after it has
// published both authorities: it begins when the copies have them. A quorate that begins it before, and
// one that leaves the copies as they are, is caught.
func TestTheOverlapBeginsWhenCopiesAreWritten(t *testing.T) {
	for name, c := range map[string]struct {
		hasty, blind bool
		want         string
	}{
		"as quorate does":           {},
		"the overlap begins before": {hasty: true, want: "I22: a client of another namespace does not trust what member"},
		"no copy is written":        {hasty: true, blind: true, want: "I22: a client of another namespace does not trust what member"},
		"none but before overlaps":  {blind: true, want: "liveness: at rest with a copy of something else"},
	} {
		t.Run(name, func(t *testing.T) {
			broken, trace := "", ""
			for seed := uint64(1); seed < 8 && broken == ""; seed++ {
				w := newCertWorld(24*time.Hour, seed)
				w.c.Spec.TLS.Rotate, w.hasty = "2026-12", c.hasty
				if c.blind {
					w.doctor = func(o *state.Observed) { o.Certificates.Copies = nil }
				}
				broken = w.awayAfterPublishing()
				if trace = strings.Join(w.trace, "\n\t"); c.want == "" && seed == 2 {
					break
				}
			}
			if c.want == "" && broken != "" || !strings.HasPrefix(broken, c.want) {
				t.Errorf("%q\n\t%s", broken, trace)
			}
		})
	}
}

// awayAfterPublishing is a change of the authorities for which quorate is away for longer than the
// overlap after both were published. It returns what was broken, or "".
func (w *certWorld) awayAfterPublishing() string {
	published := func() bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(w.secrets)), func(name string) bool { return naming.IsTrust("orders", name) })
	}
	for !published() {
		w.pass()
	}
	w.happens(25 * time.Hour)
	for n := range 600 {
		by := time.Second
		if n > 240 {
			by = time.Hour
		}
		quiet := w.pass()
		w.happens(by)
		if broken := w.judge(); broken != "" {
			return broken
		}
		if quiet {
			return w.unsatisfied()
		}
	}
	return "liveness: no rest"
}

// 572: the authorities expired while quorate was away, and no member trusts any other: new ones are
// made, all is issued by them, and every member restarts at once. Where a member serves all the same,
// a clock is wrong, and nothing is done.
func TestExpiredAuthoritiesAreReplaced(t *testing.T) {
	w := newCertWorld(time.Hour, 1)
	w.happens(11 * 365 * 24 * time.Hour)
	if !strings.HasPrefix(w.judge(), "I22") {
		t.Fatal("everybody trusts what has expired")
	}
	w.pass()
	if said := w.trace[len(w.trace)-1]; !strings.Contains(said, "orders-ca expired on 2036-02-27") && !strings.Contains(said, "orders-peer-ca expired on 2036-02-27") || !strings.Contains(said, "serves all the same; check the clock") {
		t.Errorf("while members serve: %s", said)
	}
	for range 80 {
		w.doctor = nil
		if w.judge() != "" {
			w.doctor = nobodyServes
		}
		w.happens(time.Minute)
		w.client, w.neighbour = certClient{secret: w.secrets[application]}, certClient{secret: w.copied}
		if w.pass() {
			break
		}
	}
	if broken := w.judge() + w.unsatisfied(); broken != "" {
		t.Errorf("%s\n\t%s", broken, strings.Join(w.trace, "\n\t"))
	}
}

// 570: Secrets were put back from before a change of the authorities. While members serve nothing is done;
// when they have lost each other, all restart with what these Secrets say.
func TestMembersThatLostEachOtherByOlderSecretsAreReunited(t *testing.T) {
	w := newCertWorld(0, 1)
	before := maps.Clone(w.secrets)
	w.c.Spec.TLS.Rotate = "2026-12"
	for n := 0; n < 400 && !w.pass(); n++ {
		w.happens(time.Minute)
	}
	if broken := w.unsatisfied(); broken != "" {
		t.Fatalf("%s\n\t%s", broken, strings.Join(w.trace, "\n\t"))
	}
	w.c.Spec.TLS.Rotate = ""
	mounted := w.trust
	w.write(slices.Collect(maps.Values(before))...)
	for range 10 {
		w.pass()
		w.happens(time.Second)
	}
	if w.trust != mounted || w.partition != 3 {
		t.Fatalf("while members serve:\n\t%s", strings.Join(w.trace, "\n\t"))
	}
	w.happens(3 * time.Minute)
	for n := 0; n < 80 && !w.pass(); n++ {
		w.doctor = nil
		w.client, w.neighbour = certClient{secret: w.secrets[application]}, certClient{secret: w.copied}
		if w.judge() != "" {
			w.doctor = nobodyServes
		}
		w.happens(time.Minute)
	}
	if broken := w.judge() + w.unsatisfied(); broken != "" || w.trust == mounted {
		t.Errorf("%s\n\t%s", broken, strings.Join(w.trace, "\n\t"))
	}
}

// nobodyServes has quorate see no member that is ready, or has a leader.
func nobodyServes(o *state.Observed) {
	for i := range o.Pods {
		o.Pods[i].Ready, o.Pods[i].EtcdReady = false, false
	}
	for i := range o.Rounds {
		o.Rounds[i].Problem = "no leader"
		for m := range o.Rounds[i].Members {
			o.Rounds[i].Members[m].Leader = ""
		}
	}
}

// playOrPanic is play that takes a panic for something that is broken, too.
func (w *certWorld) playOrPanic(events int) (broken string) {
	defer func() {
		if r := recover(); r != nil {
			broken = fmt.Sprint("panic: ", r)
		}
	}()
	return w.play(events)
}

// proven is every member that shows in handshakes whatever is asked of it.
func proven(o *state.Observed) []state.Handshake {
	var all []state.Handshake
	for _, p := range o.Pods {
		all = append(all, state.Handshake{Member: p.Name, Port: "client", By: state.ByBoth}, state.Handshake{Member: p.Name, Port: "peer", By: state.ByBoth})
	}
	return all
}
