package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/quorate/quorate/reconciler/naming"
)

// apiClient is the Secret that a kube-apiserver has from spec.tls.clients.
const apiClient = "apiserver-etcd"

// operated is a kube-apiserver that lives on a cluster with certificates, as an operator runs it:
// its files follow the Secret, as a kubelet has them follow, and it is replaced by another one when
// there is an authority in ca.crt that it did not read at its start. Clients reach it by a door.
type operated struct {
	*kube
	w *world
	// door leads clients to the server that runs, etcd leads it to the members.
	door, etcd *tunnel
	// files is a link to the directory with the newest content of the Secret.
	files string
	// trusted is the ca.crt that the server has read, replaced how often another one took its place.
	trusted  []byte
	replaced int
	ledger   *ledger
	stop     func()
}

// operateAPIServer runs a kube-apiserver on the cluster until the test ends, with a load and a watch.
func (w *world) operateAPIServer() *operated {
	w.Helper()
	o := &operated{w: w, files: filepath.Join(w.TempDir(), "etcd-client"), etcd: w.startTunnel(w.clientAddress())}
	o.follow()
	o.kube = startAPIServer(w.T, o.storeURL(), o.storeArgs()...)
	first := o.api
	w.Cleanup(func() {
		if o.api != first {
			o.api.Close()
		}
	})
	o.door = w.startTunnel(hostOf(o.api.Config))
	config := rest.CopyConfig(o.api.Config)
	config.Host = "https://" + o.door.address
	var err error
	o.client, err = kubernetes.NewForConfig(config)
	w.must(err)
	o.ledger = o.keepLedger()
	ctx, stop := context.WithCancel(w.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if o.follow() {
				o.replace(ctx)
			}
			time.Sleep(time.Second)
		}
	}()
	o.stop = func() { stop(); <-ended }
	w.Cleanup(o.stop)
	return o
}

func hostOf(c *rest.Config) string { return c.Host[len("https://"):] }

// storeURL is where the server finds etcd, by a name that is in the members' certificates.
func (o *operated) storeURL() string {
	return "https://localhost" + o.etcd.address[len("127.0.0.1"):]
}

func (o *operated) storeArgs() []string {
	return []string{
		"--etcd-cafile=" + filepath.Join(o.files, naming.AuthorityCertKey),
		"--etcd-certfile=" + filepath.Join(o.files, corev1.TLSCertKey),
		"--etcd-keyfile=" + filepath.Join(o.files, corev1.TLSPrivateKeyKey),
	}
}

// follow writes the Secret to the files, all at once, and reports whether the server is to be
// replaced: it may soon meet an authority that it does not trust.
func (o *operated) follow() bool {
	secret, err := o.w.cluster.Client.CoreV1().Secrets(o.w.namespace).Get(o.w.Context(), apiClient, metav1.GetOptions{})
	if err != nil {
		return false // asked again
	}
	dir := o.files + "-" + secret.ResourceVersion
	if os.Mkdir(dir, 0o700) != nil {
		return false // it is there
	}
	for key, value := range secret.Data {
		if err := os.WriteFile(filepath.Join(dir, key), value, 0o600); err != nil {
			o.w.Errorf("write the files of the API server: %v", err)
		}
	}
	if err := os.Symlink(dir, o.files+"-new"); err != nil {
		o.w.Errorf("write the files of the API server: %v", err)
	}
	if err := os.Rename(o.files+"-new", o.files); err != nil {
		o.w.Errorf("write the files of the API server: %v", err)
	}
	now := secret.Data[naming.AuthorityCertKey]
	fresh := o.trusted != nil && len(now) > 0 && !bytes.Contains(o.trusted, now)
	if o.trusted == nil || fresh {
		o.trusted = now
	}
	return fresh
}

// replace starts another server beside the one that runs, and leads clients to it: as where several
// API servers behind one address are restarted one after the other.
func (o *operated) replace(ctx context.Context) {
	next, err := o.w.cluster.Sandbox.StartAPIServer(ctx, o.storeURL(), filepath.Join(o.w.TempDir(), "api"), o.storeArgs()...)
	if err != nil {
		if ctx.Err() == nil {
			o.w.Errorf("replace the API server: %v", err)
		}
		return
	}
	o.door.leadTo(hostOf(next.Config))
	o.api.Close()
	o.api = next
	o.replaced++
}

// ledger is a load of an API server that knows what was acknowledged, and what a watch has seen of
// it. It writes each of its objects in turn, and reads back what it has written.
type ledger struct {
	kube *kube
	stop func()

	mu       sync.Mutex
	acked    []entry
	seen     map[string]entry
	problems []string
	failed   int
}

// entry is an object of the ledger as it was stored.
type entry struct{ version, name, value string }

// ledgerObjects is how many objects a ledger writes.
const ledgerObjects = 23

// keepLedger begins the load and the watch; check ends them.
func (k *kube) keepLedger() *ledger {
	k.Helper()
	l := &ledger{kube: k, seen: map[string]entry{}}
	ctx, cancel := context.WithTimeout(k.Context(), time.Hour)
	for i := range ledgerObjects {
		k.put(ledgerName(i), "-1")
	}
	list, err := k.client.CoreV1().ConfigMaps(k.namespace).List(ctx, metav1.ListOptions{})
	k.must(err)
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, watchOf(k))
	k.must(err)
	var writes, watches sync.WaitGroup
	writes.Go(func() { l.write(ctx) })
	watches.Go(func() { l.watch(watcher.ResultChan()) })
	l.stop = sync.OnceFunc(func() {
		cancel()
		writes.Wait()
		// What was acknowledged last is under way to the watch.
		time.Sleep(5 * time.Second)
		watcher.Stop()
		watches.Wait()
	})
	k.Cleanup(l.stop)
	return l
}

// watchOf watches the ConfigMaps, from a version on.
func watchOf(k *kube) cache.WatcherWithContext {
	return &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return k.client.CoreV1().ConfigMaps(k.namespace).Watch(ctx, o)
	}}
}

func ledgerName(i int) string { return fmt.Sprintf("ledger-%d", i%ledgerObjects) }

// write writes and reads ten times a second at most.
func (l *ledger) write(ctx context.Context) {
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		if err := l.writeOne(ctx, i); err != nil && ctx.Err() == nil {
			l.mu.Lock()
			l.failed++
			l.mu.Unlock()
		}
		<-pace.C
	}
}

func (l *ledger) writeOne(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	configMaps, name := l.kube.client.CoreV1().ConfigMaps(l.kube.namespace), ledgerName(i)
	stored, err := configMaps.Update(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": strconv.Itoa(i)}}, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.acked = append(l.acked, entryOf(stored))
	l.mu.Unlock()
	read, err := configMaps.Get(ctx, name, metav1.GetOptions{})
	if err == nil && entryOf(read) != entryOf(stored) {
		l.problem("%+v was acknowledged, and %+v was read after that", entryOf(stored), entryOf(read))
	}
	return err
}

func entryOf(cm *corev1.ConfigMap) entry { return entry{cm.ResourceVersion, cm.Name, cm.Data["value"]} }

// watch notes all that comes, which is in the order of its versions.
func (l *ledger) watch(events <-chan watch.Event) {
	last := int64(0)
	for event := range events {
		cm, ok := event.Object.(*corev1.ConfigMap)
		if !ok {
			l.problem("the watch broke: %+v", event.Object)
			return
		}
		version, err := strconv.ParseInt(cm.ResourceVersion, 10, 64)
		if err != nil || version <= last {
			l.problem("the watch has seen version %q after %d", cm.ResourceVersion, last)
		}
		last = version
		l.mu.Lock()
		l.seen[cm.ResourceVersion] = entryOf(cm)
		l.mu.Unlock()
	}
}

func (l *ledger) problem(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// finish ends the load and the watch, and wants the server to have been replaced so often.
func (o *operated) finish(replaced int) {
	o.w.Helper()
	o.stop()
	if o.replaced != replaced {
		o.w.Errorf("the API server was replaced %d times, want %d", o.replaced, replaced)
	}
	o.ledger.check()
}

// check ends the load, and wants each write that was acknowledged to have come to the watch, in
// order, and to be there unless a later one took its place.
func (l *ledger) check() {
	t := l.kube.T
	t.Helper()
	l.stop()
	list, err := l.kube.client.CoreV1().ConfigMaps(l.kube.namespace).List(t.Context(), metav1.ListOptions{})
	l.kube.must(err)
	values := map[string]int64{}
	for _, cm := range list.Items {
		if value, ok := cm.Data["value"]; ok {
			values[cm.Name] = number(t, value)
		}
	}
	missed, lost := 0, 0
	for _, e := range l.acked {
		if l.seen[e.version] != e {
			missed++
		}
		if now, ok := values[e.name]; !ok || now < number(t, e.value) {
			lost++
		}
	}
	if missed > 0 || lost > 0 || len(l.acked) < 1000 {
		t.Errorf("of %d writes that the API server has acknowledged, %d were lost, and the watch has missed %d", len(l.acked), lost, missed)
	}
	for _, p := range l.problems[:min(len(l.problems), 5)] {
		t.Error(p)
	}
	t.Logf("writes through the API server: %d, failed %d; changes seen: %d", len(l.acked), l.failed, len(l.seen))
}

// watchLeaves notes what each member shows to clients, and returns how many different certificates
// the member with the fewest has shown.
func (w *world) watchLeaves() (shown func() int) {
	w.Helper()
	var mu sync.Mutex
	serials := map[string]map[string]bool{}
	ctx, stop := context.WithCancel(w.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			pods, err := w.cluster.Pods(ctx, w.namespace, name)
			for i := range pods {
				limited, cancel := context.WithTimeout(ctx, 2*time.Second)
				leaf, failed := w.shownBy(limited, &pods[i], naming.ClientPort, name+"-client", "localhost")
				cancel()
				if err != nil || failed != nil {
					continue // it restarts, and is asked again
				}
				mu.Lock()
				if serials[pods[i].Name] == nil {
					serials[pods[i].Name] = map[string]bool{}
				}
				serials[pods[i].Name][leaf.SerialNumber.String()] = true
				mu.Unlock()
			}
			time.Sleep(2 * time.Second)
		}
	}()
	w.Cleanup(func() { stop(); <-ended })
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		if len(serials) == 0 {
			return 0
		}
		least := 1 << 30
		for _, s := range serials {
			least = min(least, len(s))
		}
		return least
	}
}

// awaitLeaves waits until each member has shown so many different certificates.
func (w *world) awaitLeaves(shown func() int, n int) {
	w.Helper()
	w.eventually(fmt.Sprintf("each member to have shown %d certificates", n), changeLimit, func(context.Context) (bool, error) { return shown() >= n, nil })
}
