package status

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/quorate/quorate/cmd/quorate/internal/api"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/statuses"
	"github.com/quorate/quorate/schema"
)

// fleet is a daemon, an API server that leads to it, and what the daemon has written.
type fleet struct {
	*testing.T
	mu      sync.Mutex
	items   []schema.Status
	records []corev1.ConfigMap
	pods    []corev1.Pod
	asked   []string
	daemon  *httptest.Server
	api     *httptest.Server
	token   string
	// real answers instead, where there is one; events counts who followed it.
	real   http.Handler
	events int
}

func newFleet(t *testing.T, items ...schema.Status) *fleet {
	t.Helper()
	f := &fleet{T: t, items: items}
	f.daemon = httptest.NewServer(http.HandlerFunc(f.answer))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/quorate-system/pods", func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("labelSelector"); got != "app.kubernetes.io/name=quorate,app.kubernetes.io/component=daemon" {
			t.Errorf("asked for pods with %q", got)
		}
		reply(w, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: f.pods})
	})
	mux.HandleFunc("POST /api/v1/namespaces/quorate-system/pods/quorate-0/portforward", f.forward)
	records := func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("labelSelector"); got != "quorate.dev/status" {
			t.Errorf("asked for ConfigMaps with %q", got)
		}
		reply(w, corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}, Items: f.records})
	}
	mux.HandleFunc("GET /api/v1/configmaps", records)
	mux.HandleFunc("GET /api/v1/namespaces/shop/configmaps", records)
	f.api = httptest.NewServer(mux)
	t.Cleanup(f.daemon.Close)
	t.Cleanup(f.api.Close)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	text := strings.ReplaceAll("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: SERVER}}]\nusers: [{name: u, user: {}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n", "SERVER", f.api.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", config)
	return f
}

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

// answer is the daemon's: two objects a page.
func (f *fleet) answer(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.URL.Path == api.Prefix+"/events" {
		f.events++
	} else {
		f.asked = append(f.asked, r.URL.RawQuery)
	}
	if to := f.real; to != nil {
		f.mu.Unlock()
		defer f.mu.Lock()
		to.ServeHTTP(w, r)
		return
	}
	if r.URL.Path != "/"+apiPath {
		w.WriteHeader(http.StatusNotFound)
		reply(w, map[string]string{"error": "there is no such thing"})
		return
	}
	q := r.URL.Query()
	if f.token != "" && r.Header.Get("Authorization") != "Bearer "+f.token {
		w.WriteHeader(http.StatusUnauthorized)
		reply(w, map[string]string{"error": "who are you?"})
		return
	}
	var of []schema.Status
	for _, s := range f.items {
		if (query{Namespace: q.Get("namespace"), Name: q.Get("name"), Kind: q.Get("kind")}).matches(s) {
			of = append(of, s)
		}
	}
	from := 0
	_, _ = fmt.Sscanf(q.Get("continue"), "from-%d", &from)
	to, next := min(from+2, len(of)), ""
	if to < len(of) {
		next = fmt.Sprintf("from-%d", to)
	}
	reply(w, map[string]any{"items": of[from:to], "continue": next, "total": len(of), "whole": true})
}

func (f *fleet) show(items ...schema.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items = items
}

// forward is a kubelet behind the API server, which leads to the daemon in the pod.
func (f *fleet) forward(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		f.Error(err)
		return
	}
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, accepted <-chan struct{}) error {
		if port := s.Headers().Get(corev1.PortHeader); port != "9090" {
			f.Errorf("it asks for port %s", port)
		}
		go func() {
			<-accepted
			if s.Headers().Get(corev1.StreamType) != corev1.StreamTypeData {
				_ = s.Close() // no error
				return
			}
			to, err := net.Dial("tcp", f.daemon.Listener.Addr().String())
			if err != nil {
				f.Error(err)
				return
			}
			go func() {
				_, _ = io.Copy(to, s)
				_ = to.Close() // who asked has gone
			}()
			_, _ = io.Copy(s, to)
		}()
		return nil
	})
	if conn != nil {
		<-conn.CloseChan()
	}
}

// acts puts the daemon into a pod.
func (f *fleet) acts() *fleet {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "quorate-0", Namespace: "quorate-system"}}
	pod.Spec.Containers = []corev1.Container{{Name: "quorate", Args: []string{"run", "--listen=:8080", "--page-listen=127.0.0.1:8081", "--page-listen=127.0.0.1:9090"}}}
	waiting := *pod.DeepCopy()
	waiting.Name = "quorate-1"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	f.pods = []corev1.Pod{waiting, pod}
	return f
}

// run runs a command line, and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := Command("quorate/test", gitFlags())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	var status cli.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	_, _ = fmt.Fprintln(stderr, "quorate:", err)
	return 1
}

// quorate runs a command line, and checks its exit status.
func (f *fleet) quorate(want int, args ...string) (out, errs string) {
	f.Helper()
	var stdout, stderr bytes.Buffer
	if status := run(f.Context(), args, &stdout, &stderr); status != want {
		f.Errorf("quorate status %q ends with %d, want %d: %s%s", args, status, want, &stdout, &stderr)
	}
	return stdout.String(), stderr.String()
}

// 140: one object is shown with whose signature its commit has, and by which approval that was
// accepted.
func TestStatusNamesWhoSignedTheCommit(t *testing.T) {
	s := sessions()
	s.Status.Commit = "0a1b2c3d4e5f60718293"
	s.Status.Accepted = schema.Acceptance{Signer: "SSH key of ada@example.com", Tag: "v1.4.0", TagSigner: "SSH key of release@example.com", Approval: "89ab..0a1b", ApprovedBy: "annotation by kubectl"}
	f := newFleet(t, s).acts()
	out, _ := f.quorate(0, "shop/sessions")
	const want = `Commit:       0a1b2c3d4e5f60718293
Signed with:  SSH key of ada@example.com
Tag:          v1.4.0, signed with SSH key of release@example.com
Approved:     89ab..0a1b, annotation by kubectl
`
	if !strings.Contains(out, want) {
		t.Errorf("printed\n%s\nwant\n%s", out, want)
	}
}

// A program that reads the list of objects gets one also where there are none.
func TestNoObjectsAreAnEmptyList(t *testing.T) {
	f := newFleet(t).acts()
	for format, want := range map[string]string{"json": "{\n  \"items\": [],\n  \"whole\": true\n}\n", "yaml": "items: []\nwhole: true\n"} {
		if out, _ := f.quorate(0, "-o", format); out != want {
			t.Errorf("-o %s prints %s", format, out)
		}
	}
}

func orders() schema.Status {
	s := schema.NewStatus(schema.KindCluster, "shop", "orders", schema.PhaseStalled, "Stopped", "the roll stopped at orders-2, which does not come back with etcd 3.6.16; revert the commit")
	s.Status.Commit = "0a1b2c3d4e5f60718293"
	s.Status.Cluster = &schema.ClusterStatus{
		Version:  schema.VersionStatus{Wanted: "3.6.16", Lowest: "3.5.21", Highest: "3.5.21"},
		Replicas: schema.ReplicasStatus{Wanted: 3, Members: 3, Healthy: 2},
		Members: []schema.MemberStatus{
			{Name: "orders-0", ID: "a0", Version: "3.5.21", Role: schema.RoleVoter, Leader: true, Health: schema.HealthHealthy},
			{Name: "orders-2", ID: "a2", Health: schema.HealthUnhealthy},
		},
		Drift: []schema.DriftStatus{
			{
				Kind: "Service", Name: "orders-client", State: "drifted", Fields: []string{".spec.type"}, Manager: "kubectl-edit", Since: "2026-03-01T01:00:00Z",
				Fight: "kubectl-edit changes .spec.type again each time that it is put back", Correction: "tried again at 2026-03-01T02:00:00Z",
				Changes: []schema.FieldDrift{{Path: ".spec.type", Live: "NodePort", Wanted: "ClusterIP", Manager: "kubectl-edit", Since: "2026-03-01T01:00:00Z"}, {Path: ".spec.ports", Live: "(not shown)"}},
			},
			{Kind: "Service", Name: "orders-peers", State: "drifted", Fields: []string{".spec.type"}},
			{Kind: "PodDisruptionBudget", Name: "orders", State: "missing"},
		},
		Hold:     &schema.HoldStatus{Kind: "Stopped", Rule: "member", Message: "the roll stopped at orders-2\x1b[2J", Do: "revert the commit"},
		Plan:     []schema.StepStatus{{Action: "restart orders-1 3.5.21 → 3.6.16", Reason: "the others keep the quorum", Undo: "reversible by reverting the commit until orders-0 runs 3.6.16"}},
		Rollout:  &schema.RolloutStatus{Done: 1, Members: 3},
		Warnings: []string{"orders has no backup schedule"},
		Backups:  []schema.BackupStatus{{For: "3.6.16", URL: "s3://backups/orders.db", Time: "2026-03-01T02:00:00Z", Revision: 8047, Size: 61440}},
	}
	return s
}

func sessions() schema.Status {
	s := schema.NewStatus(schema.KindCluster, "shop", "sessions", schema.PhaseReady, "Idle", "the cluster is what Git says")
	s.Status.Cluster = &schema.ClusterStatus{Version: schema.VersionStatus{Wanted: "3.6.16", Lowest: "3.6.16", Highest: "3.6.16"}, Replicas: schema.ReplicasStatus{Wanted: 3, Members: 3, Healthy: 3}}
	return s
}

func nightly() schema.Status {
	s := schema.NewStatus(schema.KindBackupSchedule, "shop", "nightly", schema.PhaseReady, "BackupTaken", "the last backup is good")
	s.Status.Schedule = &schema.ScheduleStatus{Cluster: "shop/sessions", Next: "2026-03-02T02:00:00Z", Last: &schema.BackupStatus{URL: "s3://backups/n.db", Time: "2026-03-01T02:00:00Z"}}
	return s
}

func wantText(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}

// 233: the table of all clusters, from the daemon in the cluster, over all its pages.
func TestStatusIsATable(t *testing.T) {
	other := sessions()
	other.Metadata.Namespace = "data"
	f := newFleet(t, other, orders(), sessions(), nightly()).acts()
	out, errs := f.quorate(2)
	wantText(t, out, `NAMESPACE   NAME       PHASE     VERSION           MEMBERS   ROLLOUT   DRIFT   BACKUP                 WHY
data        sessions   Ready     3.6.16            3/3       -         -       -                      the cluster is what Git says
shop        orders     Stalled   3.5.21 → 3.6.16   2/3       1/3       3       2026-03-01T02:00:00Z   the roll stopped at orders-2, which does not come back with etcd 3.6.16; revert …
shop        sessions   Ready     3.6.16            3/3       -         -       -                      the cluster is what Git says
`)
	if errs != "" {
		t.Errorf("said %q", errs)
	}
	if f.asked[0] != "kind=EtcdCluster&limit=500" || len(f.asked) != 2 || !strings.Contains(f.asked[1], "continue=from-2") {
		t.Errorf("asked %q", f.asked)
	}
	out, _ = f.quorate(0, "-n", "data")
	wantText(t, out, `NAMESPACE   NAME       PHASE   VERSION   MEMBERS   ROLLOUT   DRIFT   BACKUP   WHY
data        sessions   Ready   3.6.16    3/3       -         -       -        the cluster is what Git says
`)
	out, _ = f.quorate(0, "--kind", "schedule", "-o", "wide")
	wantText(t, out, `NAMESPACE   NAME      PHASE   CLUSTER         LAST                   NEXT                   DRILL   URL                 COMMIT   REASON        WHY
shop        nightly   Ready   shop/sessions   2026-03-01T02:00:00Z   2026-03-02T02:00:00Z   -       s3://backups/n.db   -        BackupTaken   the last backup is good
`)
	out, _ = f.quorate(0, "--kind", "restore")
	wantText(t, out, "no restore is known\n")
	out, _ = f.quorate(2, "--kind", "all")
	if strings.Count(out, "NAMESPACE") != 2 || !strings.Contains(out, "\n\nNAMESPACE") {
		t.Errorf("all kinds are\n%s", out)
	}
}

// 233: one cluster, with all that is known of it; nothing in it moves the cursor.
func TestStatusOfOneCluster(t *testing.T) {
	f := newFleet(t, orders(), sessions(), nightly()).acts()
	out, _ := f.quorate(2, "shop/orders")
	wantText(t, out, `EtcdCluster shop/orders: Stalled (Stopped)
Commit:   0a1b2c3d4e5f60718293
Version:  3.5.21 → 3.6.16
Members:  2 of 3 healthy, 3 voters
Rollout:  1 of 3 members done

Hold: Stopped, by the rule member (quorate explain member)
  the roll stopped at orders-2`+"\uFFFD"+`[2J
  What to do: revert the commit

Warning: orders has no backup schedule

MEMBER     ROLE     VERSION   HEALTH      ID
orders-0   leader   3.5.21    Healthy     a0
orders-2   -        -         Unhealthy   a2

Drift:
  ~ Service orders-client: drifted by kubectl-edit at 2026-03-01T01:00:00Z
      kubectl-edit changes .spec.type again each time that it is put back
      is put back: tried again at 2026-03-01T02:00:00Z
      .spec.type by kubectl-edit at 2026-03-01T01:00:00Z
        - ClusterIP (wanted)
        + NodePort (live)
      .spec.ports
        - none (wanted)
        + (not shown) (live)
  ~ Service orders-peers: drifted
      .spec.type
  - PodDisruptionBudget orders: missing

Plan, once nothing holds it:
  1. restart orders-1 3.5.21 → 3.6.16
     because the others keep the quorum
     undo: reversible by reverting the commit until orders-0 runs 3.6.16

BACKUP FOR   TAKEN                  REVISION   SIZE   URL
3.6.16       2026-03-01T02:00:00Z   8047       60Ki   s3://backups/orders.db
`)
	free := orders()
	free.Status.Cluster.Hold = nil
	f.show(free, sessions(), nightly())
	if tried, _ := f.quorate(2, "shop/orders"); !strings.Contains(tried, "\nNow:      restart orders-1 3.5.21 → 3.6.16\n") || strings.Contains(out, "Now:") {
		t.Errorf("what is tried is\n%s", tried)
	}
	f.show(orders(), sessions(), nightly())
	if again, _ := f.quorate(2, "-n", "shop", "orders"); again != out {
		t.Errorf("with -n it is\n%s", again)
	}
	out, _ = f.quorate(0, "shop/nightly", "--kind", "schedule")
	wantText(t, out, `EtcdBackupSchedule shop/nightly: Ready (BackupTaken)
  the last backup is good
Cluster:  shop/sessions
Last:     2026-03-01T02:00:00Z
URL:      s3://backups/n.db
Next:     2026-03-02T02:00:00Z
`)
	out, _ = f.quorate(2, "shop/orders", "-o", "json")
	var s schema.Status
	if err := json.Unmarshal([]byte(out), &s); err != nil || s.Status.Cluster.Hold.Rule != "member" {
		t.Errorf("%v:\n%s", err, out)
	}
	if out, _ = f.quorate(0, "shop/sessions", "-o", "yaml"); !strings.HasPrefix(out, "apiVersion: status.quorate.dev/v1alpha1\nkind: EtcdCluster\n") {
		t.Errorf("as YAML it is\n%s", out)
	}
	if _, errs := f.quorate(1, "shop/order"); !strings.Contains(errs, "no cluster shop/order is known") {
		t.Errorf("said %q", errs)
	}
	if _, errs := f.quorate(1, "orders"); !strings.Contains(errs, "give NAMESPACE/NAME") {
		t.Errorf("said %q", errs)
	}
}

// 233: where no daemon answers, what it has written is shown, with its age.
func TestStatusFromTheRecordsOfADaemonThatIsDown(t *testing.T) {
	f := newFleet(t)
	for i, s := range []schema.Status{orders(), sessions()} {
		for j := range s.Status.Conditions {
			s.Status.Conditions[j].LastTransitionTime = "2026-03-01T01:30:00Z"
		}
		cm, err := statuses.ConfigMap(s, "x", time.Date(2026, 3, 1, 2+i, 0, 0, 0, time.UTC))
		if err != nil {
			t.Fatal(err)
		}
		f.records = append(f.records, *cm)
	}
	f.records = append(f.records, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "forged", Namespace: "shop"}})
	out, errs := f.quorate(2)
	if strings.Count(out, "\n") != 3 || !strings.Contains(out, "shop        orders     Stalled") {
		t.Errorf("printed\n%s", out)
	}
	const want = "quorate: no daemon answers (no pod of quorate is ready in namespace quorate-system; --daemon-namespace names another one); shown is what was written into the Kubernetes cluster when each object last changed, from 2026-03-01T02:00:00Z to 2026-03-01T03:00:00Z; left out are 1 that cannot be read\n"
	if errs != want {
		t.Errorf("said %q", errs)
	}
	out, _ = f.quorate(2, "shop/orders")
	if !strings.HasPrefix(out, "EtcdCluster shop/orders: Stalled (Stopped) since 2026-03-01T01:30:00Z\n") {
		t.Errorf("printed\n%s", out)
	}
}

// 573: of two daemons that are ready the one that acts is asked, not the one that waits for the
// lease.
func TestTheDaemonThatActsIsAsked(t *testing.T) {
	f := newFleet(t, orders()).acts()
	waits, acts := &f.pods[0], &f.pods[1]
	waits.Status.Conditions = acts.Status.Conditions
	acts.Labels = map[string]string{naming.LabelActing: "true"}
	if out, _ := f.quorate(2); !strings.Contains(out, "orders") || strings.Contains(out, "no daemon answers") {
		t.Errorf("printed %s", out)
	}
}

// 233: a daemon at a URL, with a token that goes to nobody who listens.
func TestStatusFromAURL(t *testing.T) {
	f := newFleet(t, sessions())
	t.Setenv("KUBECONFIG", "/nowhere")
	f.quorate(0, "--server", f.daemon.URL)
	f.token = "sesame"
	if _, errs := f.quorate(1, "--server", f.daemon.URL); !strings.Contains(errs, "the daemon answers 401: who are you?; give a token that it accepts with --token-file") {
		t.Errorf("said %q", errs)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.quorate(0, "--server", f.daemon.URL, "--token-file", file)
	if _, errs := f.quorate(1, "--server", "http://quorate.example.com", "--token-file", file); !strings.Contains(errs, "no token is sent") {
		t.Errorf("said %q", errs)
	}
	secure := httptest.NewTLSServer(f.daemon.Config.Handler)
	defer secure.Close()
	if _, errs := f.quorate(1, "--server", secure.URL, "--token-file", file); !strings.Contains(errs, "certificate signed by unknown authority") {
		t.Errorf("said %q", errs)
	}
	authority := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	f.quorate(0, "--server", secure.URL, "--token-file", file, "--ca-file", authority)
	if _, errs := f.quorate(1, "--server", secure.URL, "--ca-file", file); !strings.Contains(errs, "has no certificate in PEM") {
		t.Errorf("said %q", errs)
	}
	if _, errs := f.quorate(1, "--server", "quorate:8080"); !strings.Contains(errs, "give a URL such as http://localhost:8081") {
		t.Errorf("said %q", errs)
	}
}
