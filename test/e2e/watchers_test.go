package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/reconciler/restore"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/test/lab"
)

// TestWatchersNoticeARestore puts a real API server on an etcd, an informer on the API
// server, and then the etcd back to a backup. A watcher from before gets the error that
// its revision is gone, and lists again: none continues with what the backup does not
// have (123).
func TestWatchersNoticeARestore(t *testing.T) {
	takesLong(t)
	for name, restarts := range map[string]bool{"under an API server that runs": false, "and the API server restarts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := startKube(t)
			k.put("kept", "1")
			k.put("changed", "before")
			k.put("dropped", "1")
			informer := k.inform()
			informer.expect("what was written", map[string]string{"kept": "1", "changed": "before", "dropped": "1"})
			url := k.backUp()
			k.put("changed", "after")
			k.put("late", "1")
			k.must(k.client.CoreV1().ConfigMaps(k.namespace).Delete(t.Context(), "dropped", metav1.DeleteOptions{}))
			informer.expect("what was written after the backup", map[string]string{"kept": "1", "changed": "after", "late": "1"})
			seen := informer.LastSyncResourceVersion()

			if restarts {
				k.api.Kill()
			}
			k.restore(url)
			if restarts {
				k.must(k.api.Restart(t.Context()))
			}
			client, err := k.etcd.Dial("", "")
			k.expectExpired(client, err, seen)
			informer.expect("what the backup has", map[string]string{"kept": "1", "changed": "before", "dropped": "1"})
			if now := number(t, informer.LastSyncResourceVersion()); now < number(t, seen)+state.RevisionBump/2 {
				t.Errorf("the informer was at %s and is at %d", seen, now)
			}
			k.put("new", "1")
			k.put("changed", "again")
			informer.expect("what is written then", map[string]string{"kept": "1", "changed": "again", "dropped": "1", "new": "1"})
		})
	}
}

// kube is an API server of the test's own, and its etcd where that is one as well.
type kube struct {
	*testing.T
	etcd      *lab.EtcdServer
	api       *lab.APIServer
	client    *kubernetes.Clientset
	namespace string
}

func startKube(t *testing.T) *kube {
	t.Helper()
	sandbox := shared.cluster.Sandbox
	if sandbox == nil {
		t.Skip("only the sandbox has an API server to start")
	}
	etcd, err := sandbox.StartEtcd(t.Context(), "3.6.16", filepath.Join(t.TempDir(), "etcd"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	k := startAPIServer(t, etcd.URL)
	k.etcd = etcd
	return k
}

// startAPIServer starts an API server with its store at an etcd's URL.
func startAPIServer(t *testing.T, etcdURL string, args ...string) *kube {
	t.Helper()
	k := &kube{T: t, namespace: "shop"}
	var err error
	k.api, err = shared.cluster.Sandbox.StartAPIServer(t.Context(), etcdURL, filepath.Join(t.TempDir(), "api"), args...)
	k.must(err)
	t.Cleanup(k.api.Close)
	k.client, err = kubernetes.NewForConfig(k.api.Config)
	k.must(err)
	_, err = k.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.namespace}}, metav1.CreateOptions{})
	k.must(err)
	return k
}

func (k *kube) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

// put creates a ConfigMap or changes it.
func (k *kube) put(name, value string) {
	k.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": value}}
	configMaps := k.client.CoreV1().ConfigMaps(k.namespace)
	_, err := configMaps.Update(k.Context(), cm, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = configMaps.Create(k.Context(), cm, metav1.CreateOptions{})
	}
	k.must(err)
}

// backUp stores a backup as quorate does, and returns its URL.
func (k *kube) backUp() string {
	k.Helper()
	client, err := k.etcd.Dial("", "")
	k.must(err)
	defer func() { _ = client.Close() }()
	dir := k.TempDir()
	return storeBackup(k.T, client, "file://"+dir+"/1.db?root="+dir, backup.Manifest{})
}

// restore puts the backup into the place of the data, as quorate does in its Job, and
// continues with that at the same address.
func (k *kube) restore(url string) {
	k.Helper()
	k.etcd.Kill()
	m, err := backup.Store{Drivers: clouds.Drivers()}.Verify(k.Context(), url)
	k.must(err)
	volume := k.TempDir()
	k.must(restore.Run(restore.Request{
		Volume: volume, Member: k.etcd.Name, PeerURL: k.etcd.PeerURL, Token: "another", AtLeast: m.Revision,
		Fetch: func(path string) error {
			from, _, err := backup.Store{Drivers: clouds.Drivers()}.Open(k.Context(), url)
			if err != nil {
				return err
			}
			defer func() { _ = from.Close() }()
			to, err := os.Create(path)
			if err != nil {
				return err
			}
			_, err = io.Copy(to, from)
			return errors.Join(err, to.Close())
		},
	}, zap.NewNop()))
	k.etcd.DataDir = filepath.Join(volume, "data")
	k.must(k.etcd.Restart(k.Context()))
}

// expectExpired wants a watch from before the restore to be turned away: by etcd
// itself, and by the API server as soon as that has noticed.
func (k *kube) expectExpired(client *clientv3.Client, err error, revision string) {
	k.Helper()
	k.must(err)
	defer func() { _ = client.Close() }()
	select {
	case answer := <-client.Watch(k.Context(), "/", clientv3.WithPrefix(), clientv3.WithRev(number(k.T, revision)+1)):
		if !errors.Is(answer.Err(), rpctypes.ErrCompacted) {
			k.Errorf("a watch of etcd from before: %+v, %v", answer, answer.Err())
		}
	case <-time.After(holdLimit):
		k.Error("a watch of etcd from before hears nothing")
	}
	k.eventually("the API server to turn a watch from before away", func(ctx context.Context) (bool, error) {
		events, err := k.client.CoreV1().ConfigMaps(k.namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: revision})
		if err != nil {
			return apierrors.IsResourceExpired(err) || apierrors.IsGone(err), nil
		}
		defer events.Stop()
		select {
		case event := <-events.ResultChan():
			expired := apierrors.FromObject(event.Object)
			return apierrors.IsResourceExpired(expired) || apierrors.IsGone(expired), nil
		case <-time.After(time.Second):
			return false, nil
		}
	})
}

func (k *kube) eventually(what string, check func(context.Context) (bool, error)) {
	k.Helper()
	if err := lab.Poll(k.Context(), createLimit, check); err != nil {
		k.Fatalf("wait for %s: %v", what, err)
	}
}

// number reads a resource version, which is a revision of etcd.
func number(t *testing.T, resourceVersion string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// informer is what a controller knows of the ConfigMaps of a namespace.
type informer struct {
	cache.SharedIndexInformer
	kube *kube
}

func (k *kube) inform() *informer {
	k.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(k.client, 0, informers.WithNamespace(k.namespace))
	i := &informer{factory.Core().V1().ConfigMaps().Informer(), k}
	ctx, cancel := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	k.Cleanup(func() { cancel(); factory.Shutdown() })
	return i
}

// expect waits until the informer knows exactly these values.
func (i *informer) expect(what string, want map[string]string) {
	i.kube.Helper()
	var known map[string]string
	err := lab.Poll(i.kube.Context(), createLimit, func(context.Context) (bool, error) {
		known = map[string]string{}
		err := cache.ListAll(i.GetStore(), labels.Everything(), func(o any) {
			if cm := o.(*corev1.ConfigMap); cm.Name != "kube-root-ca.crt" && !strings.HasPrefix(cm.Name, busyPrefix) {
				known[cm.Name] = cm.Data["value"]
			}
		})
		return maps.Equal(known, want), err
	})
	if err != nil {
		i.kube.Fatalf("the informer is to know %s, %v: %v; it knows %v", what, want, err, known)
	}
}

// storeBackup takes a snapshot and stores it with what quorate notes with it.
func storeBackup(t *testing.T, client *clientv3.Client, url string, m backup.Manifest) string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	status, err := client.Status(t.Context(), client.Endpoints()[0])
	must(err)
	m.EtcdVersion, m.StorageVersion, m.Revision = status.Version, status.StorageVersion, status.Header.Revision
	m.ClusterID, m.Time = fmt.Sprintf("%x", status.Header.ClusterId), time.Now().UTC()
	snapshot, err := client.Snapshot(t.Context())
	must(err)
	defer func() { _ = snapshot.Close() }()
	_, err = backup.Store{Drivers: clouds.Drivers()}.Save(t.Context(), url, snapshot, m)
	must(err)
	return url
}
