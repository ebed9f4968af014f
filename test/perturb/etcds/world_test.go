package etcds

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/lab"
	"github.com/quorate/quorate/test/perturb/score"
)

const (
	// places is how many members there may be.
	places = 3
	// tick is how often the controllers act.
	tick = 100 * time.Millisecond
	// settled is how long nothing changes in a world at rest.
	settled = 2 * time.Second
	// backoff is how long the kubelet waits after a container that ended.
	backoff = 10 * time.Second
	// longest is when a world is given up.
	longest = 4 * time.Minute
)

// world is a cluster of processes, and quorate.
type world struct {
	*reconcilertest.World
	line   *line
	binary string
	// dir has the volumes, peers is the proxy between members, and net what the addresses of
	// pods begin with.
	dir, peers, net string
	// clients and listens are where the members listen.
	clients, listens map[string]string
	members          map[string]*member
	// starts is how often a pod of each member was started.
	starts map[string]int
	wrong  []string
	formed bool
	// changed is when a process has started or ended last.
	changed time.Time
}

// networks counts the worlds: each has addresses of its own, where pods have the port that
// they have in Kubernetes. All that begin with 127 are of this machine.
var networks atomic.Uint32

func newWorld(t *testing.T, replicas int32, at, how string) *world {
	t.Helper()
	binary := etcdtest.Binary(t, etcdtest.V36)
	w := &world{
		World: reconcilertest.InRealTime(t, clustertest.DisableTLS, clustertest.SkipBackup, clustertest.SetReplicas(replicas), quick),
		line:  &line{at: at, how: how, counted: map[string]int{}}, binary: binary, dir: t.TempDir(),
		clients: map[string]string{}, listens: map[string]string{}, members: map[string]*member{}, starts: map[string]int{},
	}
	w.Starting = w.prepare
	for _, name := range ordinals(places) {
		w.clients[name], w.listens[name] = backuptest.FreeAddress(t), backuptest.FreeAddress(t)
	}
	w.openDoors()
	w.openPeers()
	t.Cleanup(w.stopAll)
	return w
}

// quick leaves out what takes minutes.
func quick(c *schema.EtcdCluster) {
	c.Spec.Upgrade.Soak = &metav1.Duration{}
	c.Spec.Etcd.Options = map[string]string{"heartbeat-interval": "100", "election-timeout": "1000"}
}

// openDoors opens a door for each member, at the address of its pod.
func (w *world) openDoors() {
	for range 250 {
		w.net = fmt.Sprintf("127.%d.%d.", 1+os.Getpid()%250, networks.Add(1)%250)
		if err := w.tryDoors(); err == nil {
			return
		}
		w.closeDoors()
	}
	w.Fatal("no addresses are free on loopback")
}

func (w *world) tryDoors() error {
	for i, name := range ordinals(places) {
		if _, err := w.line.open(net.JoinHostPort(w.ip(i), fmt.Sprint(naming.ClientPort)), w.clients[name]); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) closeDoors() {
	for _, d := range w.line.doors {
		_ = d.server.Close()
	}
	w.line.doors = nil
}

func (w *world) ip(ordinal int) string { return fmt.Sprint(w.net, ordinal+1) }

func (w *world) openPeers() {
	w.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	server := &http.Server{Handler: peerProxy(w.listens), ReadHeaderTimeout: patience}
	go func() { _ = server.Serve(listener) }() // until it is closed
	w.Cleanup(func() { _ = server.Close() })
	w.peers = "http://" + listener.Addr().String()
}

// prepare gives a pod its address. It is not ready before its member is.
func (w *world) prepare(pod *corev1.Pod) {
	pod.Status.PodIP = w.ip(int(naming.Ordinal(pod.Name)))
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}}
}

func (w *world) stopAll() {
	for _, m := range w.members {
		m.kill()
	}
	w.closeDoors()
}

// run lets quorate run.
func (w *world) run() {
	w.Helper()
	if err := w.Process(w.API, etcd.New()); err != nil {
		w.Fatal(err)
	}
	w.R.SetDesired([]desired.Cluster{w.Wish})
}

func (w *world) commit(edit func(*schema.EtcdCluster)) {
	w.Commit(edit)
	w.R.SetDesired([]desired.Cluster{w.Wish})
}

// step lets the controllers and the kubelets act once.
func (w *world) step() {
	for w.Control() {
		w.changed = time.Now()
	}
	pods := w.pods()
	for name, m := range w.members {
		if p := pods[name]; p == nil || p.UID != m.pod.UID {
			delete(w.members, name)
			w.changed = time.Now()
			m.stop()
		}
	}
	for name, p := range pods {
		w.serve(name, p)
	}
	w.look()
	time.Sleep(tick)
}

func (w *world) pods() map[string]*corev1.Pod {
	pods := map[string]*corev1.Pod{}
	for _, name := range ordinals(places) {
		if p := w.Pod(name); p != nil {
			pods[name] = p
		}
	}
	return pods
}

// serve starts the process of a pod, again where it has ended, and says whether it is ready.
func (w *world) serve(name string, p *corev1.Pod) {
	m := w.members[name]
	if m == nil || m.over() > backoff {
		w.begin(name, p)
	}
	is, want := p.Status.Conditions[0].Status, corev1.ConditionFalse
	if m = w.members[name]; m != nil && m.alive() && m.ready.Load() {
		want = corev1.ConditionTrue
	}
	if is != want {
		p = p.DeepCopy()
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: want, LastTransitionTime: metav1.Now()}}
		w.Put(reconcilertest.PodsResource(), p)
		w.changed = time.Now()
	}
}

// begin starts the process of a pod, where the guard lets it.
func (w *world) begin(name string, p *corev1.Pod) {
	o, err := w.API.Tracker().Get(reconcilertest.ClaimsResource(), "shop", "data-"+name)
	if err != nil {
		return // its claim comes in a moment
	}
	claim, _ := o.(*corev1.PersistentVolumeClaim)
	volume := filepath.Join(w.dir, string(claim.UID))
	if err := os.MkdirAll(volume, 0o700); err != nil {
		w.Fatal(err)
	}
	again := w.members[name] != nil && w.members[name].cmd != nil
	m := &member{began: time.Now(), pod: p, volume: volume, client: w.clients[name], peer: w.listens[name], ended: make(chan struct{})}
	w.members[name] = m
	if err := m.start(w.binary, w.peers, w.recordData()); err != nil {
		return // the guard refuses, and is asked again
	}
	if !again {
		w.starts[name]++
	}
	w.changed = time.Now()
}

// recordData is the record, as it is mounted into a pod.
func (w *world) recordData() map[string]string {
	o, err := w.API.Tracker().Get(corev1.SchemeGroupVersion.WithResource("configmaps"), "shop", naming.Record("orders"))
	if err != nil {
		return nil
	}
	cm, _ := o.(*corev1.ConfigMap)
	return cm.Data
}

func (w *world) add(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(w.wrong, text) {
		w.wrong = append(w.wrong, text)
	}
}

// look wants at most one voter to be down.
func (w *world) look() {
	voters, down := 0, 0
	if data := w.recordData(); data != nil {
		for name := range w.Record().Members {
			voters++
			if m := w.members[name]; m == nil || !m.ready.Load() {
				down++
			}
		}
	}
	w.formed = w.formed || voters > 0 && down == 0
	if w.formed && voters > 1 && down > 1 {
		w.add("I2: %d of %d voters are down at once", down, voters)
	}
}

// rest lets time pass until the cluster is what Git says, and no disturbance has
// consequences to come. It reports whether it came to that.
func (w *world) rest() bool {
	w.Helper()
	w.changed = time.Now()
	for deadline := time.Now().Add(longest); time.Now().Before(deadline); {
		w.step()
		_, hit := w.line.seen()
		if time.Since(w.changed) > settled && time.Since(hit) > hangsLasts+settled && w.told() {
			return true
		}
	}
	return false
}

// told reports whether quorate says that the newest commit is applied, and all is well.
func (w *world) told() bool {
	list, _ := w.R.Statuses()
	for _, s := range list {
		if phase, why := s.Phase(); s.Observed == w.Wish.Commit && phase == schema.PhaseReady && why.Reason == "Idle" {
			return true
		}
	}
	return false
}

// hold is why the cluster is not what Git says, "" where it is, and whether that names what a
// person must do.
func (w *world) hold() (why string, wayOn bool) {
	p, err := w.R.Plan(w.Context(), w.Wish)
	switch {
	case err != nil:
		return err.Error(), false
	case p.Hold != nil:
		return p.Hold.String(), p.Hold.Do != ""
	case len(p.Steps) > 0:
		return p.Steps[0].Action.String(), false
	}
	return "", false
}

// picture is the world without what differs from one run to the next.
func (w *world) picture() (lines []string) {
	w.Helper()
	core, apps := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion
	for kind, resource := range map[string]apischema.GroupVersionResource{
		"Service": core.WithResource("services"), "Pod": core.WithResource("pods"), "PersistentVolumeClaim": core.WithResource("persistentvolumeclaims"),
		"StatefulSet": apps.WithResource("statefulsets"), "PodDisruptionBudget": policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"),
	} {
		list, err := w.API.Tracker().List(resource, apischema.GroupVersionKind{Group: resource.Group, Version: resource.Version, Kind: kind}, "shop")
		if err != nil {
			w.Fatal(err)
		}
		for _, line := range score.List(kind, list) {
			// What is said of a cluster is written some time later.
			if !strings.Contains(line, ".metadata.labels.quorate.dev/") {
				lines = append(lines, strings.ReplaceAll(line, w.net, "…"))
			}
		}
	}
	lines = append(lines, w.listed()...)
	slices.Sort(lines)
	return lines
}

// listed are the members as etcd lists them, and as the record does.
func (w *world) listed() (lines []string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	client := w.client("orders-0")
	defer func() { _ = client.Close() }()
	list, err := client.MemberList(ctx)
	if err != nil {
		w.Fatal(err)
	}
	for _, m := range list.Members {
		lines = append(lines, fmt.Sprintf("etcd %s learner=%t peers=%v", m.Name, m.IsLearner, m.PeerURLs))
		if recorded := w.Record().Members[m.Name]; recorded != fmt.Sprintf("%x", m.ID) {
			w.add("%s is %x, and on record as %s", m.Name, m.ID, recorded)
		}
	}
	if r := w.Record(); len(r.Members) != len(list.Members) || r.Joining != nil || r.Leaving != nil {
		w.add("the record has %v, joining %v, leaving %v", slices.Sorted(maps.Keys(r.Members)), r.Joining, r.Leaving)
	}
	return lines
}

// client is a client of members, past the doors.
func (w *world) client(members ...string) *clientv3.Client {
	w.Helper()
	var endpoints []string
	for _, name := range members {
		endpoints = append(endpoints, "http://"+w.clients[name])
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		w.Fatal(err)
	}
	return c
}

// record begins a history of clients of all members that there are.
func (w *world) record() *lab.History {
	var clients []*clientv3.Client
	for range 3 {
		clients = append(clients, w.client(ordinals(int(w.Wish.Spec.Replicas))...))
	}
	return lab.StartHistory(clients, lab.HistoryOptions{Clients: len(clients), Limit: 5 * time.Minute})
}
