package sources_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// addReferences gives the served repository many references, packed as a server
// has them.
func addReferences(tb testing.TB, u *upstream, count int) {
	tb.Helper()
	head := u.git(u.work, "rev-parse", "HEAD")
	text := strings.Builder{}
	text.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for i := range count {
		fmt.Fprintf(&text, "%s refs/heads/branch-%06d\n", head, i)
	}
	fmt.Fprintf(&text, "%s refs/heads/main\n", head)
	write(tb, filepath.Join(u.bare, "packed-refs"), text.String())
}

// referenceCounts are how many branches the server has in the benchmarks.
func referenceCounts() []int { return []int{1, 1_000, 50_000} }

// BenchmarkUnchangedBranch is a poll of a branch that has not moved, by quorate,
// by go-git, and by Git itself.
func BenchmarkUnchangedBranch(b *testing.B) {
	for _, count := range referenceCounts() {
		u := newUpstreamWith(b, map[string]string{"a.yaml": "a"})
		addReferences(b, u, count)
		http, secure := serve(b, u), serveSSH(b, u, false)
		for name, repo := range map[string]*sources.Repository{
			"quorate-http": open(b, sources.Config{URL: http.repo()}),
			"quorate-ssh":  open(b, sources.Config{URL: secure.repo(), Auth: sources.Auth{Dir: secure.credentials}}),
		} {
			fetch(b, repo)
			benchmark(b, name, count, func() error {
				_, err := repo.Fetch(b.Context())
				return err
			})
		}
		list := func(url string, auth transport.AuthMethod) error {
			remote := git.NewRemote(memory.NewStorage(), &config.RemoteConfig{Name: "origin", URLs: []string{url}})
			_, err := remote.ListContext(b.Context(), &git.ListOptions{Auth: auth})
			return err
		}
		auth := secure.ofGoGit(b)
		benchmark(b, "go-git-http", count, func() error { return list(http.repo(), nil) })
		benchmark(b, "go-git-ssh", count, func() error { return list(secure.repo(), auth) })
		ssh := secure.ofGit(b)
		benchmark(b, "git-ls-remote-http", count, func() error {
			u.git(u.work, "ls-remote", http.repo(), "refs/heads/main")
			return nil
		})
		benchmark(b, "git-ls-remote-ssh", count, func() error {
			u.git(u.work, "-c", ssh, "ls-remote", secure.repo(), "refs/heads/main")
			return nil
		})
	}
}

// BenchmarkFirstFetch reads a branch of 100 files that nothing is known of, without its
// history and the other branches, by quorate, by go-git, and by Git itself.
func BenchmarkFirstFetch(b *testing.B) {
	files := map[string]string{}
	for i := range 100 {
		files[fmt.Sprintf("clusters/%d.yaml", i)] = strings.Repeat(fmt.Sprintf("line: %d\n", i), 50)
	}
	for _, count := range referenceCounts() {
		u := newUpstreamWith(b, files)
		addReferences(b, u, count)
		http, secure := serve(b, u), serveSSH(b, u, false)
		for name, cfg := range map[string]sources.Config{
			"quorate-http": {URL: http.repo()},
			"quorate-ssh":  {URL: secure.repo(), Auth: sources.Auth{Dir: secure.credentials}},
		} {
			benchmark(b, name, count, func() error {
				s, err := open(b, cfg).Fetch(b.Context())
				if err == nil && len(s.Files) != len(files) {
					err = fmt.Errorf("%d files", len(s.Files))
				}
				return err
			})
		}
		auth := secure.ofGoGit(b)
		benchmark(b, "go-git-http", count, func() error { return cloneByGoGit(b, http.repo(), nil, len(files)) })
		benchmark(b, "go-git-ssh", count, func() error { return cloneByGoGit(b, secure.repo(), auth, len(files)) })
		benchmark(b, "git-clone-http", count, func() error {
			u.git(u.root, "clone", "--quiet", "--depth=1", "--branch=main", http.repo(), filepath.Join(b.TempDir(), "clone"))
			return nil
		})
	}
}

// cloneByGoGit does what quorate does, with go-git's own wire: one commit in memory,
// and each of its files.
func cloneByGoGit(b *testing.B, url string, auth transport.AuthMethod, files int) error {
	b.Helper()
	repo, err := git.CloneContext(b.Context(), memory.NewStorage(), nil, &git.CloneOptions{
		URL: url, Auth: auth, ReferenceName: "refs/heads/main", SingleBranch: true, Depth: 1, Tags: git.NoTags, NoCheckout: true,
	})
	if err != nil {
		return err
	}
	head, err := repo.Head()
	if err != nil {
		return err
	}
	commit, err := repo.CommitObject(head.Hash())
	if err != nil {
		return err
	}
	list, err := commit.Files()
	if err != nil {
		return err
	}
	read := 0
	err = list.ForEach(func(f *object.File) error {
		read++
		_, err := f.Contents()
		return err
	})
	if err == nil && read != files {
		err = fmt.Errorf("%d files", read)
	}
	return err
}

// benchmark measures one way, by its median: other work on the machine lengthens a few.
func benchmark(b *testing.B, name string, references int, work func() error) {
	b.Run(fmt.Sprintf("%s/refs=%d", name, references), func(b *testing.B) {
		b.ReportAllocs()
		var took []time.Duration
		for b.Loop() {
			start := time.Now()
			if err := work(); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2]), "median-ns/op")
	})
}

// ofGoGit is the login for go-git's transport.
func (s *sshServer) ofGoGit(b *testing.B) transport.AuthMethod {
	b.Helper()
	auth, err := gitssh.NewPublicKeysFromFile(s.user, filepath.Join(s.credentials, "identity"), "")
	if err != nil {
		b.Fatal(err)
	}
	if auth.HostKeyCallback, err = gitssh.NewKnownHostsCallback(filepath.Join(s.credentials, "known_hosts")); err != nil {
		b.Fatal(err)
	}
	return auth
}

// ofGit is the setting that makes Git log in.
func (s *sshServer) ofGit(b *testing.B) string {
	b.Helper()
	if err := os.Chmod(filepath.Join(s.credentials, "identity"), 0o600); err != nil {
		b.Fatal(err)
	}
	return fmt.Sprintf("core.sshCommand=ssh -F none -o SendEnv=GIT_PROTOCOL -o UserKnownHostsFile=%s/known_hosts -i %[1]s/identity", s.credentials)
}

// readOnly makes the test's binary read the repository of that URL, the named commits
// first, and print the memory that it needed.
const readOnly = "QUORATE_TEST_READ"

func TestMain(m *testing.M) {
	if offers, is := os.LookupEnv(azureOverSSH); is {
		if err := runAzure(offers); err != nil {
			log.Fatal(err) //nolint:forbidigo // TestMain returns no error
		}
		return
	}
	if url, commits, ok := strings.Cut(os.Getenv(readOnly), " "); ok {
		r := &reader{url: url}
		for _, commit := range append(strings.Fields(commits), "") {
			if _, err := r.read(context.Background(), commit); err != nil {
				log.Fatal(err) //nolint:forbidigo // TestMain returns no error
			}
		}
		status, _ := os.ReadFile("/proc/self/status") // Its reader misses the figure.
		_, peak, _ := strings.Cut(string(status), "VmHWM:")
		fmt.Println(strings.Fields(peak)[0])
		return
	}
	os.Exit(m.Run()) //nolint:forbidigo // TestMain returns no error
}

// BenchmarkNewCommit goes from a new commit to its files in memory, and to the
// clusters that they declare, at the start and where the commit before is known and one
// file has changed, next to a shallow clone by Git, which parses nothing.
func BenchmarkNewCommit(b *testing.B) {
	sample, err := os.ReadFile("../examples/fleet/production/payments/clusters.yaml")
	if err != nil {
		b.Fatal(err)
	}
	text, _, _ := strings.Cut(string(sample), "---\n")
	const changed = "clusters/team-0/cluster-0.yaml"
	for _, count := range []int{100, 1_000, 10_000} {
		files := map[string]string{}
		for i := range count {
			files[fmt.Sprintf("clusters/team-%d/cluster-%d.yaml", i%100, i)] = strings.Replace(text, "name: orders", fmt.Sprintf("name: orders-%d", i), 1)
		}
		u := newUpstreamWith(b, files)
		u.git(u.bare, "repack", "-adq")
		srv := serve(b, u)
		b.Run(fmt.Sprintf("fetched/files=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				fetch(b, open(b, sources.Config{URL: srv.repo(), Path: "clusters"}))
			}
		})
		b.Run(fmt.Sprintf("parsed/files=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				(&reader{url: srv.repo()}).mustRead(b, count)
			}
			b.ReportMetric(peak(b, srv.repo(), ""), "peak-B")
		})
		b.Run(fmt.Sprintf("next/files=%d", count), func(b *testing.B) {
			r := &reader{url: srv.repo()}
			r.mustRead(b, count)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				u.commit("change", map[string]string{changed: fmt.Sprintf("%s# %d\n", files[changed], i)})
				b.StartTimer()
				r.mustRead(b, count)
			}
			b.ReportMetric(peak(b, srv.repo(), u.git(u.work, "rev-parse", "HEAD~1")), "peak-B")
		})
		b.Run(fmt.Sprintf("git-clone/files=%d", count), func(b *testing.B) {
			for b.Loop() {
				u.git(u.root, "clone", "--quiet", "--depth=1", "--branch=main", srv.repo(), filepath.Join(b.TempDir(), "clone"))
			}
		})
	}
}

// reader reads one commit after another, as the daemon does.
type reader struct {
	url    string
	last   sources.Snapshot
	parser schema.Parser
	// main is the repository whose head is read.
	main *sources.Repository
}

// read fetches and parses a commit, or the head for "", and returns how many clusters
// there are.
func (r *reader) read(ctx context.Context, commit string) (int, error) {
	repo, err := r.repository(commit)
	if err != nil {
		return 0, err
	}
	if r.last, err = repo.FetchAfter(ctx, sources.Trust{Applied: r.last.Commit}); err != nil {
		return 0, err
	}
	files := make([]schema.File, len(r.last.Files))
	for i, f := range r.last.Files {
		files[i] = schema.File{Path: f.Path, Data: f.Data}
	}
	return len(r.parser.Parse(files).Clusters), nil
}

// repository is that of a commit, or of the head for "".
func (r *reader) repository(commit string) (repo *sources.Repository, err error) {
	if commit != "" {
		return sources.New(sources.Config{URL: r.url, Path: "clusters", Commit: commit})
	}
	if r.main == nil {
		r.main, err = sources.New(sources.Config{URL: r.url, Path: "clusters", Branch: "main"})
	}
	return r.main, err
}

// mustRead reads the head, which has so many clusters.
func (r *reader) mustRead(b *testing.B, count int) {
	b.Helper()
	if clusters, err := r.read(b.Context(), ""); err != nil || clusters != count {
		b.Fatal(clusters, err)
	}
}

// peak is the largest resident size, in bytes, of a process that reads the head, and
// a commit before it if one is named. The process measures itself: what the kernel
// tells of a child has the size of the one that started it in it.
func peak(b *testing.B, url, before string) float64 {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), readOnly+"="+url+" "+before)
	out, err := cmd.CombinedOutput()
	kib, parseErr := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil || parseErr != nil {
		b.Fatalf("read %s: %v, %v\n%s", url, err, parseErr, out)
	}
	return float64(kib << 10)
}
