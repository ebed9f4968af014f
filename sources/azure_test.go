package sources_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/sources"
)

// azureOffers is what Azure DevOps offers, in its order, with the space in front. It
// speaks protocol 0 only, and its packs have no offsets in them.
const azureOffers = " multi_ack thin-pack side-band side-band-64k no-progress multi_ack_detailed no-done shallow allow-tip-sha1-in-want filter symref=HEAD:refs/heads/main"

// azure is Git's own service with what Azure DevOps offers instead, and with its
// refusals.
type azure struct{ offers string }

// greeting puts other capabilities behind the first reference.
func (a azure) greeting(packets [][]byte) []byte {
	var out bytes.Buffer
	for _, p := range packets {
		if ref, _, has := bytes.Cut(p, []byte{0}); has {
			p = fmt.Appendf(nil, "%s\x00%s\n", ref, a.offers)
		}
		writePacket(&out, p)
	}
	return out.Bytes()
}

// refusal is what is wrong with a request; "" for nothing.
func (a azure) refusal(request [][]byte) string {
	first := strings.Fields(string(request[0]))
	for _, word := range first[2:] {
		if !slices.Contains(strings.Fields(a.offers), word) {
			return "TF401041: The Git protocol sent is not as expected (" + word + " was not offered)."
		}
	}
	if !slices.Contains(first, "multi_ack") && !slices.Contains(first, "multi_ack_detailed") {
		return "TF401041: The Git protocol sent is not as expected (Clients must support multi-ack.)."
	}
	for _, p := range request {
		if filter, is := strings.CutPrefix(strings.TrimSpace(string(p)), "filter "); is && filter != "blob:none" && filter != "tree:0" {
			return "TF401041: The Git protocol sent is not as expected (filter)."
		}
	}
	return ""
}

// readPackets reads up to a packet that ends them, or everything.
func readPackets(r io.Reader, last string) ([][]byte, error) {
	var packets [][]byte
	for {
		head := make([]byte, 4)
		if _, err := io.ReadFull(r, head); err != nil {
			if errors.Is(err, io.EOF) && last == "" {
				err = nil
			}
			return packets, err
		}
		size, err := strconv.ParseUint(string(head), 16, 16)
		if err != nil {
			return nil, err
		}
		data := make([]byte, max(size, 4)-4)
		if _, err := io.ReadFull(r, data); err != nil {
			return nil, err
		}
		packets = append(packets, data)
		if last != "" && string(data) == last || size == 0 && last == flushed {
			return packets, nil
		}
	}
}

// flushed is the end of a greeting.
const flushed = "0000"

// writePacket writes an empty one as a flush.
func writePacket(w io.Writer, data []byte) {
	if len(data) == 0 {
		_, _ = io.WriteString(w, flushed)
		return
	}
	fmt.Fprintf(w, "%04x%s", len(data)+4, data)
}

// serveAzure is over HTTP, where each request stands alone.
func serveAzure(tb testing.TB, u *upstream, offers string) *server {
	tb.Helper()
	u.git(u.bare, "config", "uploadpack.allowFilter", "true")
	srv, a := serve(tb, u), azure{offers}
	srv.old.Store(true)
	srv.first(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasSuffix(r.URL.RequestURI(), "/info/refs?service=git-upload-pack"):
			a.list(w, r, srv.backend)
			return true
		case strings.HasSuffix(r.URL.Path, "/git-upload-pack"):
			return a.refuses(w, r)
		}
		return false
	})
	return srv
}

func (a azure) list(w http.ResponseWriter, r *http.Request, backend http.Handler) {
	whole := httptest.NewRecorder()
	backend.ServeHTTP(whole, r)
	w.Header().Set("Content-Type", whole.Header().Get("Content-Type"))
	w.WriteHeader(whole.Code)
	if whole.Code != http.StatusOK {
		return
	}
	packets, err := readPackets(whole.Body, "")
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(a.greeting(packets))
}

func (a azure) refuses(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	request, err := readPackets(bytes.NewReader(body), "")
	if err != nil {
		panic(err)
	}
	why := a.refusal(request)
	if why != "" {
		http.Error(w, why, http.StatusBadRequest)
	}
	return why != ""
}

// azureOverSSH makes the test's binary the only command of an SSH server.
const azureOverSSH = "QUORATE_TEST_AZURE"

// runAzure is one process over SSH, where request and answer follow the greeting.
func runAzure(offers string) error {
	a, in := azure{offers}, bufio.NewReader(os.Stdin)
	cmd := exec.Command("sh", "-c", os.Getenv("SSH_ORIGINAL_COMMAND"))
	cmd.Stderr = os.Stderr
	to, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	greeting, err := readPackets(from, flushed)
	if err != nil {
		return cmd.Wait()
	}
	_, _ = os.Stdout.Write(a.greeting(greeting))
	request, err := readPackets(in, "done\n")
	if err != nil { // the client wanted no more than the list
		to.Close()
		return cmd.Wait()
	}
	if why := a.refusal(request); why != "" {
		to.Close()
		_ = cmd.Wait()
		return errors.New(why)
	}
	for _, p := range request {
		writePacket(to, p)
	}
	_, _ = io.Copy(os.Stdout, from)
	return cmd.Wait()
}

// 490: Azure DevOps takes no request without multi_ack, and no filter by size.
func TestAzureDevOpsIsRead(t *testing.T) {
	for name, offers := range map[string]string{
		"as it is":              azureOffers,
		"multi_ack alone":       strings.ReplaceAll(azureOffers, " multi_ack_detailed", ""),
		"without a side band":   " multi_ack multi_ack_detailed shallow",
		"multi_ack and no more": " multi_ack",
	} {
		t.Run(name, func(t *testing.T) {
			for way, serve := range map[string]func(*upstream) sources.Config{
				"http": func(u *upstream) sources.Config { return sources.Config{URL: serveAzure(t, u, offers).repo()} },
				"ssh": func(u *upstream) sources.Config {
					u.git(u.bare, "config", "uploadpack.allowFilter", "true")
					variables := setEnv(azureOverSSH+"="+offers, "HOME="+t.TempDir())
					srv := serveSSHWith(t, u, "ForceCommand "+testBinary(t)+"\n"+variables)
					return sources.Config{URL: srv.repo(), Auth: sources.Auth{Dir: srv.credentials}}
				},
			} {
				t.Run(way, func(t *testing.T) { readTwice(t, serve) })
			}
		})
	}
}

func testBinary(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// readTwice reads a branch at first, without news, and after a commit whose history
// leads to the one before.
func readTwice(t *testing.T, serve func(*upstream) sources.Config) {
	t.Helper()
	long := strings.Repeat("a line that many files have\n", 400)
	u := newUpstreamWith(t, map[string]string{"a.yaml": long, "b.yaml": long + "b", "big.bin": strings.Repeat("x", 2<<20)})
	first := u.commit("more", map[string]string{"b.yaml": long + "c"})
	u.git(u.bare, "repack", "-adfq")
	repo := open(t, serve(u))
	for range 2 {
		s := after(t, repo, sources.Trust{}, nil)
		if wantPaths(t, s, "a.yaml", "b.yaml"); s.Commit != first {
			t.Fatalf("commit %s, want %s", s.Commit, first)
		}
	}
	u.commit("second", map[string]string{"a.yaml": long + "d"})
	third := u.commit("third", map[string]string{"c.yaml": long + "e"})
	for range 2 {
		s := after(t, repo, sources.Trust{Applied: first}, nil)
		if wantPaths(t, s, "a.yaml", "b.yaml", "c.yaml"); s.Commit != third {
			t.Fatalf("commit %s, want %s", s.Commit, third)
		}
	}
	u.git(u.work, "commit", "--quiet", "--amend", "--message", "another third")
	u.git(u.work, "push", "--quiet", "--force", "origin", "main")
	after(t, repo, sources.Trust{Applied: third}, sources.ErrRewritten, "does not descend from "+third)
}
