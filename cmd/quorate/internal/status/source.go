package status

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/statuses"
	"github.com/quorate/quorate/schema"
)

// query is which objects are asked for; an empty field is any.
type query struct{ Namespace, Name, Kind string }

// matches reports whether a status was asked for.
func (q query) matches(s schema.Status) bool {
	return q.names(s.Kind, s.Metadata.Namespace, s.Metadata.Name)
}

// names reports whether an object was asked for.
func (q query) names(kind, namespace, name string) bool {
	return (q.Namespace == "" || q.Namespace == namespace) && (q.Name == "" || q.Name == name) && (q.Kind == "" || q.Kind == kind)
}

// item is the status of one object. Where several Kubernetes clusters are shown, it says which
// one it is from, by the branch with its status, and when that was written.
type item struct {
	Branch  string `json:"branch,omitempty"`
	Written string `json:"written,omitempty"`
	schema.Status
}

// sortItems orders items as schema.SortStatuses does, and those of one name by their branches.
func sortItems(items []item) {
	slices.SortStableFunc(items, func(a, b item) int {
		return cmp.Or(schema.CompareStatuses(a.Status, b.Status), cmp.Compare(a.Branch, b.Branch))
	})
}

// answer is what is known of the objects.
type answer struct {
	items []item
	// whole is false while the daemon has not reconciled some of them yet.
	whole bool
	// note is what a reader has to know about where it comes from; "" for nothing.
	note string
}

// source knows how objects are.
type source interface {
	ask(ctx context.Context, q query) (answer, error)
	// follow calls told when it can tell of changes, and at each change of what is asked
	// for, until it cannot any more, and always returns why.
	follow(ctx context.Context, q query, told func()) error
}

// daemonFlags say where the daemon is.
type daemonFlags struct {
	server, tokenFile, caFile, kubeconfig, namespace string
	// agent is what the API server logs.
	agent string
}

func (f *daemonFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.server, "server", "", "URL of the daemon, such as http://localhost:8081 of a kubectl port-forward; default through the API server")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with a bearer token for --server")
	flags.StringVar(&f.caFile, "ca-file", "", "file with the CA, in PEM, of the certificate of an https --server; default those that this machine trusts")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file; default $KUBECONFIG, else the pod's own service account")
	flags.StringVar(&f.namespace, "daemon-namespace", "quorate-system", "namespace in which quorate runs")
}

// source returns the daemon, or what finds it.
func (f *daemonFlags) source() (source, error) {
	if f.server == "" {
		if f.tokenFile != "" || f.caFile != "" {
			return nil, errors.New("--token-file and --ca-file are for --server: add it; through the API server your kubeconfig says who you are, and whom to trust")
		}
		kube, config, err := cli.Connect(f.kubeconfig, f.agent)
		if err != nil {
			return nil, err
		}
		return cluster{kube: kube, config: config, namespace: f.namespace}, nil
	}
	at, err := url.Parse(f.server)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, fmt.Errorf("--server is %q: give a URL such as http://localhost:8081", f.server)
	}
	d := server{url: at}
	if f.caFile != "" {
		if d.client, err = trusting(f.caFile); err != nil {
			return nil, err
		}
	}
	if f.tokenFile != "" {
		token, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("read --token-file: %w", err)
		}
		if d.token = strings.TrimSpace(string(token)); at.Scheme == "http" && !isLoopback(at.Hostname()) {
			return nil, errors.New("--server is http://, over which no token is sent: give an https:// URL")
		}
	}
	return d, nil
}

// trusting is a client that takes certificates of a CA and no other.
func trusting(file string) (*http.Client, error) {
	authority, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read --ca-file: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("--ca-file %s has no certificate in PEM: give the ca.crt of the Secret that the daemon's certificate is in", file)
	}
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}}, nil
}

func isLoopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// apiPath is where the daemon tells how objects are.
const apiPath = "api/v1/statuses"

// page is one answer of the daemon.
type page struct {
	Items    []schema.Status `json:"items"`
	Continue string          `json:"continue"`
	Whole    bool            `json:"whole"`
}

// maxAnswer bounds what is read of one page.
const maxAnswer = 64 << 20

// pages asks for all pages, by a function that makes one request.
func pages(ctx context.Context, q query, get func(ctx context.Context, params url.Values) ([]byte, error)) (answer, error) {
	a := answer{whole: true}
	params := url.Values{"limit": {"500"}}
	for key, value := range map[string]string{"kind": q.Kind, "namespace": q.Namespace, "name": q.Name} {
		if value != "" {
			params.Set(key, value)
		}
	}
	for {
		text, err := get(ctx, params)
		if err != nil {
			return answer{}, err
		}
		var p page
		if err := json.Unmarshal(text, &p); err != nil {
			return answer{}, fmt.Errorf("read the daemon's answer: %w; is it a quorate of this release?", err)
		}
		for _, s := range p.Items {
			if q.matches(s) {
				a.items = append(a.items, item{Status: s})
			}
		}
		a.whole = a.whole && p.Whole
		if p.Continue == "" || p.Continue == params.Get("continue") {
			return a, nil
		}
		params.Set("continue", p.Continue)
	}
}

// server is a daemon at a URL.
type server struct {
	url   *url.URL
	token string
	// client asks it; nil for the default one.
	client *http.Client
}

func (d server) ask(ctx context.Context, q query) (answer, error) { return pages(ctx, q, d.get) }

func (d server) get(ctx context.Context, params url.Values) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	response, err := d.open(ctx, apiPath, params, "application/json")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the daemon's answer: %w", err)
	}
	return text, nil
}

// open makes one request, and returns the answer to one that is granted.
func (d server) open(ctx context.Context, path string, params url.Values, accept string) (*http.Response, error) {
	at := d.url.JoinPath(path)
	at.RawQuery = params.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	if d.token != "" {
		request.Header.Set("Authorization", "Bearer "+d.token)
	}
	response, err := cmp.Or(d.client, http.DefaultClient).Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the daemon: %w; check --server", err)
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // else there is only its status
		return nil, refused(response.StatusCode, text)
	}
	return response, nil
}

// refused is the error of an answer that is none.
func refused(code int, text []byte) error {
	var problem struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(text, &problem) // then there is only its status
	do := "check --server"
	if code == http.StatusUnauthorized || code == http.StatusForbidden {
		do = "give a token that it accepts with --token-file"
	}
	return fmt.Errorf("the daemon answers %d: %s; %s", code, cli.Shown(cmp.Or(problem.Error, http.StatusText(code))), do)
}

// askTimeout is how long one answer may take.
const askTimeout = 15 * time.Second

// cluster finds the daemons of a Kubernetes cluster through its API server, and what they
// have written there.
type cluster struct {
	kube kubernetes.Interface
	// config is how the API server is reached.
	config    *rest.Config
	namespace string
}

// ask asks every daemon that acts; where none answers, the records say what the last one
// knew.
func (c cluster) ask(ctx context.Context, q query) (answer, error) {
	a, daemonErr := c.daemons(ctx, q)
	if daemonErr == nil {
		return a, nil
	}
	a, err := c.records(ctx, q)
	if err != nil {
		return answer{}, fmt.Errorf("%w; and the records that it left: %w", daemonErr, err)
	}
	a.note = fmt.Sprintf("no daemon answers (%s); %s", cli.Shown(daemonErr.Error()), a.note)
	return a, nil
}

// daemons asks each daemon that is ready, since each knows what its own source names.
func (c cluster) daemons(ctx context.Context, q query) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	pods, err := c.ready(ctx)
	if err != nil {
		return answer{}, err
	}
	a := answer{whole: true}
	for _, pod := range pods {
		err := c.forwarded(ctx, pod, func(d server) error {
			one, err := d.ask(ctx, q)
			a.items, a.whole = append(a.items, one.items...), a.whole && one.whole
			return err
		})
		if err != nil {
			return answer{}, fmt.Errorf("ask the daemon in pod %s: %w", pod.Name, err)
		}
	}
	sortItems(a.items)
	return a, nil
}

// ready are the pods of the daemons that act, one at least. The others wait for the lease,
// or start.
func (c cluster) ready(ctx context.Context) ([]corev1.Pod, error) {
	list, err := c.kube.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=quorate,app.kubernetes.io/component=daemon"})
	if err != nil {
		return nil, fmt.Errorf("find the daemon in namespace %s: %w", c.namespace, err)
	}
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !isReady(pod) })
	if slices.ContainsFunc(pods, acts) { // an older quorate does not say, and is ready only while it acts
		pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return !acts(pod) })
	}
	if len(pods) == 0 {
		return nil, fmt.Errorf("no pod of quorate is ready in namespace %s; --daemon-namespace names another one", c.namespace)
	}
	return pods, nil
}

// acts reports whether a daemon says that it holds the lease.
func acts(pod corev1.Pod) bool { return pod.Labels[naming.LabelActing] != "" }

// isReady reports whether a daemon answers.
func isReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// records reads what the daemons have written beside the objects.
func (c cluster) records(ctx context.Context, q query) (answer, error) {
	a := answer{whole: true}
	var oldest, newest time.Time
	unreadable := 0
	o := metav1.ListOptions{LabelSelector: naming.LabelStatus, Limit: 500}
	for list, err := range kube.Pages(ctx, c.kube.CoreV1().ConfigMaps(q.Namespace).List, o) {
		if err != nil {
			return answer{}, fmt.Errorf("list the ConfigMaps with statuses: %w", err)
		}
		for i := range list.Items {
			s, written, err := statuses.Read(&list.Items[i])
			if err != nil {
				unreadable++
				continue
			}
			if !q.matches(s) {
				continue
			}
			a.items = append(a.items, item{Status: s})
			if oldest.IsZero() || written.Before(oldest) {
				oldest = written
			}
			if written.After(newest) {
				newest = written
			}
		}
	}
	sortItems(a.items)
	a.note = howOld(oldest, newest)
	if unreadable > 0 {
		a.note += fmt.Sprintf("; left out are %d that cannot be read", unreadable)
	}
	return a, nil
}

// howOld tells how old records are.
func howOld(oldest, newest time.Time) string {
	const text = "shown is what was written into the Kubernetes cluster when each object last changed"
	switch {
	case newest.IsZero():
		return text
	case oldest.Equal(newest):
		return text + ", at " + newest.Format(time.RFC3339)
	}
	return fmt.Sprintf("%s, from %s to %s", text, oldest.Format(time.RFC3339), newest.Format(time.RFC3339))
}
