package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"maragu.dev/gomponents"

	"github.com/quorate/quorate/cmd/quorate/internal/api"
)

// files cannot be written to.
//
//go:embed static
var files embed.FS

// policy is the Content-Security-Policy: nothing but what this server gives, and nothing
// that stands in a page itself is run.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// pages serves the pages of what feed knows.
type pages struct {
	feed *api.Feed
	// static are the files that pages refer to, by their paths.
	static map[string][]byte
}

// Handler serves the pages of what feed knows.
func Handler(feed *api.Feed) http.Handler {
	p := &pages{feed: feed, static: readStatic()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.fleet)
	mux.HandleFunc("GET /objects/{kind}/{namespace}/{name}", p.object)
	mux.HandleFunc("GET /git", p.git)
	mux.HandleFunc("GET /pulls", p.pulls)
	mux.HandleFunc("GET /static/{file}", p.file)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			p.problem(w, http.StatusMethodNotAllowed, "Only reading is allowed", errors.New("quorate is changed by commits, and this page only reads"))
			return
		}
		p.problem(w, http.StatusNotFound, "No such page", fmt.Errorf("there is no %s", r.URL.Path))
	})
	return mux
}

func readStatic() map[string][]byte {
	static := map[string][]byte{}
	names, err := fs.Glob(files, "static/*")
	for _, name := range names {
		text, readErr := files.ReadFile(name)
		err = errors.Join(err, readErr)
		static["/"+name] = text
	}
	if err != nil {
		panic(err) // they are embedded
	}
	return static
}

// address is where a static file is found. It changes with the file's content, so that a
// browser may keep it.
func (p *pages) address(path string) string {
	sum := sha256.Sum256(p.static[path])
	return path + "?v=" + hex.EncodeToString(sum[:6])
}

// show writes a page with this content. It is made as a whole first, so that no half page is
// taken for one.
func (p *pages) show(w http.ResponseWriter, code int, f frame, content gomponents.Node) {
	f.Held = p.feed.Git().Reason != ""
	var out bytes.Buffer
	if err := p.layout(f, content).Render(&out); err != nil {
		api.WriteError(w, http.StatusInternalServerError, fmt.Errorf("show the page: %w; please report this bug", err))
		return
	}
	secure(w.Header())
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(out.Bytes()) // the client has gone
}

func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// problem shows why there is no other page.
func (p *pages) problem(w http.ResponseWriter, code int, title string, err error) {
	again := 0
	if code == http.StatusServiceUnavailable {
		again = 5
	}
	p.show(w, code, frame{Title: title, Watch: "all", Again: again}, problemPage(err.Error()))
}

// file serves a static file.
func (p *pages) file(w http.ResponseWriter, r *http.Request) {
	types := map[string]string{"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
	text, there := p.static[r.URL.Path]
	if !there {
		p.problem(w, http.StatusNotFound, "No such file", fmt.Errorf("there is no %s", r.URL.Path))
		return
	}
	secure(w.Header())
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Type", types[r.URL.Path[strings.LastIndexByte(r.URL.Path, '.')+1:]])
	_, _ = w.Write(text)
}

// git shows what is followed in Git.
func (p *pages) git(w http.ResponseWriter, _ *http.Request) {
	p.show(w, http.StatusOK, frame{Title: "Git", Here: "/git", Watch: "git"}, gitPage(api.GitOf(p.feed.Git())))
}

// pulls shows what the open pull requests would do.
func (p *pages) pulls(w http.ResponseWriter, _ *http.Request) {
	p.show(w, http.StatusOK, frame{Title: "Pull requests", Here: "/pulls", Watch: "git"}, pullsPage(p.feed.Pulls()))
}

// pathOf is the path of an object's page.
func pathOf(kind, namespace, name string) string {
	return "/objects/" + url.PathEscape(kind) + "/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
}

func pathOfStatus(s api.Found) string {
	path := pathOf(s.Kind, s.Metadata.Namespace, s.Metadata.Name)
	if s.Branch != "" {
		path += "?" + url.Values{"branch": {s.Branch}}.Encode()
	}
	return path
}
