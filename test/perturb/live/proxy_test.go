package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/quorate/quorate/test/perturb/score"
)

// The ways in which a write is disturbed.
const (
	answered = "answered-with-error" // it is done, and answered with an error
	killed   = "killed-after"        // it is done, and quorate is killed before the answer
	heldBack = "event-held-back"     // the watches tell of it a while later, and of what follows
	unseen   = "state-unseen"        // the watches tell only of the next change, or a while later
	// heldFor is that while.
	heldFor = 6 * time.Second
)

var errKilled = errors.New("this process was killed")

// counter counts the writes of all processes of a world, and picks the one to disturb.
type counter struct {
	at, how string

	mu sync.Mutex
	// on is true while writes are counted, and counted how many there were of each sort.
	on      bool
	counted map[string]int
	// names are the writes in their order, hit is when the disturbed one came, and last when
	// the last one did, or counting began.
	names     []string
	hit, last time.Time
}

// next counts a write, and returns how to disturb it, "" for not at all.
func (c *counter) next(sort string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = time.Now()
	if !c.on {
		return ""
	}
	c.counted[sort]++
	name := fmt.Sprintf("%s-%d", sort, c.counted[sort])
	c.names = append(c.names, name)
	if name != c.at {
		return ""
	}
	c.hit = c.last
	return c.how
}

// lasts is for how long watches differ from what is.
func (c *counter) lasts() time.Duration {
	if c.how == heldBack || c.how == unseen {
		return heldFor
	}
	return 0
}

func (c *counter) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on, c.last = true, time.Now()
}

func (c *counter) seen() (names []string, hit, last time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.names...), c.hit, c.last
}

// process is one process of quorate, with its way to the API server.
type process struct {
	*counter
	namespace string
	ctx       context.Context
	kill      context.CancelFunc
	server    *httptest.Server
	held      held
}

// newProcess starts the proxy of a process, which knows one namespace: what quorate asks of all
// of them is asked of this one.
func newProcess(c *counter, namespace string) *process {
	p := &process{counter: c, namespace: namespace, held: held{skip: c.how == unseen}}
	p.ctx, p.kill = context.WithCancel(context.Background())
	p.server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: p.rewrite, Transport: p, FlushInterval: -1,
		// Whoever asks gets no answer at all.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
	return p
}

// client reaches the API server as this process.
func (p *process) client() (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(&rest.Config{
		Host: p.server.URL, QPS: 100, Burst: 200,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON}, // events are lines
	})
}

// close ends the proxy of a process that runs no more.
func (p *process) close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

func (p *process) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(api.url)
	if r.In.Method == http.MethodGet && p.listed(r.In.URL.Path) {
		path := r.Out.URL.Path
		i := strings.LastIndex(path, "/")
		r.Out.URL.Path = path[:i] + "/namespaces/" + p.namespace + path[i:]
	}
}

// listed reports whether a path is that of all objects of a sort that have namespaces.
func (p *process) listed(path string) bool {
	sort, name := objectIn(path)
	return name == "" && !strings.Contains(path, "/namespaces/") && sort != "nodes" && sort != "persistentvolumes" && sort != "namespaces" && !strings.Contains(path, "/storage.k8s.io/")
}

// RoundTrip sends a request on, and disturbs it where it is the one.
func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.ctx.Err() != nil {
		return nil, errKilled
	}
	if r.Method != http.MethodGet && !r.URL.Query().Has("dryRun") {
		return p.write(r)
	}
	response, err := api.transport.RoundTrip(r)
	if err == nil && r.URL.Query().Has("watch") {
		resource, _ := objectIn(r.URL.Path)
		response.Body = p.held.watch(p.ctx, resource, response.Body)
	}
	return response, err
}

func (p *process) write(r *http.Request) (*http.Response, error) {
	resource, name, err := written(r)
	if err != nil {
		return nil, err
	}
	how, key := p.next(strings.Join([]string{r.Method, resource, score.Plain(name)}, "-")), resource+"/"+name
	if how == heldBack || how == unseen {
		p.held.hold(key)
	}
	response, err := api.transport.RoundTrip(r)
	if err != nil || how == "" {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", key, err)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	switch how {
	case killed:
		p.kill()
		return nil, errKilled
	case answered:
		return failure(r), nil
	}
	p.held.since(key, versionOf(body))
	return response, nil
}

// failure is the answer of an API server whose etcd was too slow.
func failure(r *http.Request) *http.Response {
	const text = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcdserver: request timed out","reason":"InternalError","code":500}`
	return &http.Response{
		Status: "500 Internal Server Error", StatusCode: http.StatusInternalServerError, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), Request: r,
	}
}

// objectIn is what a path such as /apis/apps/v1/namespaces/x/statefulsets/orders/scale names,
// as "statefulsets.scale" and "orders".
func objectIn(path string) (resource, name string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	parts = parts[min(len(parts), map[string]int{"api": 2, "apis": 3}[parts[0]]):]
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	switch len(parts) {
	case 0:
		return "", ""
	case 1:
		return parts[0], ""
	case 2:
		return parts[0], parts[1]
	}
	return parts[0] + "." + parts[2], parts[1]
}

// written is what a write writes: its name is in the path, or in the body of what is new.
func written(r *http.Request) (resource, name string, err error) {
	resource, name = objectIn(r.URL.Path)
	if name != "" || r.Body == nil {
		return resource, name, nil
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return "", "", fmt.Errorf("read the body of %s %s: %w", r.Method, r.URL.Path, err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var o object
	_ = json.Unmarshal(body, &o) // what is no object has no name
	return resource, o.Metadata.Name, nil
}

// object is what the proxy reads of one.
type object struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

// version is how old an object is: those of one API server can be compared.
func (o object) version() int64 {
	v, err := strconv.ParseInt(o.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return v
}

func versionOf(body []byte) int64 {
	var o object
	_ = json.Unmarshal(body, &o) // the answer to a deletion may be no object
	return o.version()
}
