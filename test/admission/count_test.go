package admission

import (
	"bytes"
	"net/http"
	"path"
	"slices"
	"sync"
)

// writes are the requests of quorate that change something, counted on their way. One that only
// asks what would come of a write changes nothing.
type writes struct {
	mu   sync.Mutex
	list []string
	// forbidden are those that the API server did not let quorate make.
	forbidden []string
}

func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet && !r.URL.Query().Has("dryRun") {
			w.mu.Lock()
			w.list = append(w.list, written(r))
			w.mu.Unlock()
		}
		answer, err := next.RoundTrip(r)
		if err == nil && answer.StatusCode == http.StatusForbidden {
			w.mu.Lock()
			w.forbidden = append(w.forbidden, written(r))
			w.mu.Unlock()
		}
		return answer, err
	})
}

// written is a request in short.
func written(r *http.Request) string {
	return r.Method + " " + path.Base(path.Dir(r.URL.Path)) + "/" + path.Base(r.URL.Path)
}

// refused returns what quorate was not let do.
func (w *writes) refused() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.forbidden)
}

// take returns what was written since the last call.
func (w *writes) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.list
	w.list = nil
	return list
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// buffer is a log that two may use.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
