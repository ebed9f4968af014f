package sources_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
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

// BenchmarkUnchangedBranch is a look at a branch that has not moved, by quorate,
// by go-git, and by Git itself.
func BenchmarkUnchangedBranch(b *testing.B) {
	for _, count := range []int{1, 50_000} {
		u := newUpstreamWith(b, map[string]string{"a.yaml": "a"})
		addReferences(b, u, count)
		http, secure := serve(b, u), serveSSH(b, u, false)
		for name, repo := range map[string]*sources.Repository{
			"quorate-http": open(b, sources.Config{URL: http.repo()}),
			"quorate-ssh":  open(b, sources.Config{URL: secure.repo(), Auth: sources.Auth{Dir: secure.credentials}}),
		} {
			fetch(b, repo)
			b.Run(fmt.Sprintf("%s/refs=%d", name, count), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					fetch(b, repo)
				}
			})
		}
		b.Run(fmt.Sprintf("go-git-http/refs=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				remote := git.NewRemote(memory.NewStorage(), &config.RemoteConfig{Name: "origin", URLs: []string{http.repo()}})
				if _, err := remote.ListContext(b.Context(), &git.ListOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("git-ls-remote-http/refs=%d", count), func(b *testing.B) {
			for b.Loop() {
				u.git(u.work, "ls-remote", http.repo(), "refs/heads/main")
			}
		})
		b.Run(fmt.Sprintf("git-ls-remote-ssh/refs=%d", count), func(b *testing.B) {
			ssh := fmt.Sprintf("core.sshCommand=ssh -F none -o SendEnv=GIT_PROTOCOL -o UserKnownHostsFile=%s/known_hosts -i %[1]s/identity", secure.credentials)
			if err := os.Chmod(filepath.Join(secure.credentials, "identity"), 0o600); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				u.git(u.work, "-c", ssh, "ls-remote", secure.repo(), "refs/heads/main")
			}
		})
	}
}

// BenchmarkCommitOf10000Files goes from a new commit to its parsed files.
func BenchmarkCommitOf10000Files(b *testing.B) {
	sample, err := os.ReadFile("../examples/fleet/production/payments/clusters.yaml")
	if err != nil {
		b.Fatal(err)
	}
	text, _, _ := strings.Cut(string(sample), "---\n")
	files := map[string]string{}
	for i := range 10_000 {
		files[fmt.Sprintf("clusters/team-%d/cluster-%d.yaml", i%100, i)] = strings.Replace(text, "name: orders", fmt.Sprintf("name: orders-%d", i), 1)
	}
	u := newUpstreamWith(b, files)
	u.git(u.bare, "repack", "-adq")
	srv := serve(b, u)
	for name, parse := range map[string]bool{"fetched": false, "parsed": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := fetch(b, open(b, sources.Config{URL: srv.repo(), Path: "clusters"}))
				if !parse {
					continue
				}
				list := make([]schema.File, len(s.Files))
				for i, f := range s.Files {
					list[i] = schema.File{Path: f.Path, Data: f.Data}
				}
				if set := schema.Parse(list); len(set.Clusters) != 10_000 {
					b.Fatalf("%d clusters", len(set.Clusters))
				}
			}
		})
	}
}
