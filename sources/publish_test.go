package sources_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"

	"github.com/quorate/quorate/sources"
	"github.com/quorate/quorate/test/needs"
)

const statusBranch = "refs/heads/quorate/status"

// newPublisher writes as the owner "us".
func newPublisher(tb testing.TB, cfg sources.PublishConfig) *sources.Publisher {
	tb.Helper()
	if cfg.Owner == "" {
		cfg.Owner = "us"
	}
	p, err := sources.NewPublisher(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// saying is made of files that hold one text.
func saying(text string) sources.Publication {
	return sources.Publication{
		Subject: "status: " + text, Commit: "0a1b2c3", Time: time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC),
		Files: []sources.File{
			{Path: "clusters/shop/orders.yaml", Data: []byte("text: " + text + "\n")},
			{Path: "clusters/shop/carts.yaml", Data: []byte("text: always\n")},
			{Path: "README.md", Data: []byte("# " + text + "\n")},
		},
	}
}

func publish(tb testing.TB, p *sources.Publisher, text string) sources.Published {
	tb.Helper()
	done, err := p.Publish(tb.Context(), saying(text))
	if err != nil {
		tb.Fatal(err)
	}
	return done
}

func notPublished(tb testing.TB, p *sources.Publisher, kind error, says ...string) error {
	tb.Helper()
	done, err := p.Publish(tb.Context(), saying("refused"))
	if !errors.Is(err, kind) || done.Pushed {
		tb.Fatalf("got %+v and error %v, want one that is %q", done, err, kind)
	}
	for _, part := range says {
		if !strings.Contains(err.Error(), part) {
			tb.Fatalf("error %q does not say %q", err, part)
		}
	}
	return err
}

// written is the upstream as a place to write to, with what its server lets pass.
func written(tb testing.TB) *upstream {
	tb.Helper()
	u := newUpstreamWith(tb, map[string]string{"a.yaml": "a"})
	u.git(u.bare, "config", "http.receivepack", "true")
	return u
}

// published counts the commits of the status branch.
func (u *upstream) published() string {
	u.tb.Helper()
	return u.git(u.bare, "rev-list", "--count", statusBranch)
}

// 137: over every way to a repository the branch is made with its own history,
// written to when something changes, and not when nothing does.
func TestPublishIsACommitForEachChange(t *testing.T) {
	for name, open := range map[string]func(u *upstream) sources.PublishConfig{
		"file": func(u *upstream) sources.PublishConfig { return sources.PublishConfig{URL: u.bare} },
		"http": func(u *upstream) sources.PublishConfig { return sources.PublishConfig{URL: serve(t, u).repo()} },
		"ssh": func(u *upstream) sources.PublishConfig {
			srv := serveSSH(t, u, false)
			return sources.PublishConfig{URL: srv.repo(), Auth: sources.Auth{Dir: srv.credentials}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := written(t)
			main := u.git(u.bare, "rev-parse", "main")
			p := newPublisher(t, open(u))
			first := publish(t, p, "one")
			again := publish(t, p, "one")
			if !first.Pushed || again.Pushed || again.Commit != first.Commit || u.published() != "1" {
				t.Fatalf("first %+v, again %+v, %s commits", first, again, u.published())
			}
			// Another process finds what is there.
			p = newPublisher(t, open(u))
			if again := publish(t, p, "one"); again.Pushed {
				t.Fatalf("another process wrote %+v", again)
			}
			second := publish(t, p, "two")
			if got := u.git(u.bare, "show", statusBranch+":clusters/shop/orders.yaml"); got != "text: two" || u.published() != "2" {
				t.Errorf("it says %q in %s commits", got, u.published())
			}
			if parent := u.git(u.bare, "rev-parse", second.Commit+"^"); parent != first.Commit {
				t.Errorf("the parent is %s, want %s", parent, first.Commit)
			}
			want := "quorate <quorate@localhost>\nstatus: two\n\n[skip ci]\n\nQuorate-Commit: 0a1b2c3\nQuorate-Count: 2\nQuorate-Status-Of: us"
			if got := u.git(u.bare, "log", "-1", "--format=%an <%ae>%n%B", statusBranch); got != want {
				t.Errorf("the commit says\n%s\nwant\n%s", got, want)
			}
			if now := u.git(u.bare, "rev-parse", "main"); now != main {
				t.Errorf("main went from %s to %s", main, now)
			}
			u.git(u.bare, "fsck", "--strict")
		})
	}
}

// 138: ten writers at once lose no commit.
func TestTenWritersLoseNothing(t *testing.T) {
	for name, open := range map[string]func(u *upstream) string{
		"file": func(u *upstream) string { return u.bare },
		"http": func(u *upstream) string { return serve(t, u).repo() },
	} {
		t.Run(name, func(t *testing.T) {
			u := written(t)
			url := open(u)
			var writers sync.WaitGroup
			for i := range 10 {
				writers.Go(func() {
					p := newPublisher(t, sources.PublishConfig{URL: url})
					for range 50 {
						_, err := p.Publish(t.Context(), saying(fmt.Sprintf("writer %d", i)))
						if err == nil {
							return
						}
						if !errors.Is(err, sources.ErrUnreachable) {
							t.Errorf("writer %d: %v", i, err)
							return
						}
					}
					t.Errorf("writer %d never won", i)
				})
			}
			writers.Wait()
			subjects := u.git(u.bare, "log", "--format=%s", statusBranch)
			for i := range 10 {
				if !strings.Contains(subjects, fmt.Sprintf("status: writer %d", i)) {
					t.Errorf("the commit of writer %d is lost:\n%s", i, subjects)
				}
			}
			if n := u.published(); n != "10" {
				t.Errorf("%s commits", n)
			}
		})
	}
}

// 142: a branch of another owner is never written to.
func TestBranchOfAnotherOwnerIsNotWritten(t *testing.T) {
	u := written(t)
	url := serve(t, u).repo()
	u.git(u.bare, "branch", "quorate/status", "main")
	before := u.git(u.bare, "rev-parse", statusBranch)
	notPublished(t, newPublisher(t, sources.PublishConfig{URL: url}), sources.ErrForeignBranch,
		"branch quorate/status", "was not made by quorate", "name another branch, or delete this one")
	if now := u.git(u.bare, "rev-parse", statusBranch); now != before {
		t.Errorf("it went from %s to %s", before, now)
	}
	other := sources.PublishConfig{URL: url, Branch: "status", Owner: "them"}
	publish(t, newPublisher(t, other), "theirs")
	notPublished(t, newPublisher(t, sources.PublishConfig{URL: url, Branch: "status"}), sources.ErrForeignBranch, "belongs to another quorate, them")
	// A person's commit on top of ours takes the branch over, while we are running.
	p := newPublisher(t, sources.PublishConfig{URL: url, Branch: "mine"})
	publish(t, p, "one")
	u.git(u.bare, "update-ref", "refs/heads/mine", u.git(u.bare, "commit-tree", "-m", "by hand", "-p", "mine", "mine^{tree}"))
	notPublished(t, p, sources.ErrForeignBranch, "was not made by quorate")
}

func TestBranchThatWasDeletedIsMadeAnew(t *testing.T) {
	u := written(t)
	p := newPublisher(t, sources.PublishConfig{URL: serve(t, u).repo()})
	publish(t, p, "one")
	u.git(u.bare, "update-ref", "-d", statusBranch)
	u.git(u.bare, "gc", "--prune=now", "--quiet")
	publish(t, p, "two")
	if n := u.published(); n != "1" {
		t.Errorf("%s commits", n)
	}
	u.git(u.bare, "fsck", "--strict")
}

// A writer that is killed between its commit and the push, or between the push and
// the answer, leaves nothing that the next one stumbles over.
func TestWriterIsKilledAroundThePush(t *testing.T) {
	for name, arrives := range map[string]bool{"before the push": false, "before the answer": true} {
		t.Run(name, func(t *testing.T) {
			u := written(t)
			srv := serve(t, u)
			ctx, kill := context.WithCancel(t.Context())
			srv.first(func(_ http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/git-receive-pack") || ctx.Err() != nil {
					return false
				}
				if arrives {
					srv.backend.ServeHTTP(discarded{http.Header{}}, r)
				}
				kill()
				panic(http.ErrAbortHandler)
			})
			if _, err := newPublisher(t, sources.PublishConfig{URL: srv.repo()}).Publish(ctx, saying("one")); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
			if done := publish(t, newPublisher(t, sources.PublishConfig{URL: srv.repo()}), "one"); done.Pushed == arrives {
				t.Errorf("the next one gave %+v", done)
			}
			if n := u.published(); n != "1" {
				t.Errorf("%s commits", n)
			}
		})
	}
}

// discarded is an answer that is dropped.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d discarded) WriteHeader(int)             {}

// A rule that protects the branch is reported in the server's own words, without what the
// server repeats of a secret.
func TestRejectedPushSaysWhy(t *testing.T) {
	u := written(t)
	hook := filepath.Join(u.bare, "hooks", "pre-receive")
	write(t, hook, "#!/bin/sh\necho 'error:\nerror: branches are protected: "+secret+"\nerror:'\nexit 1\n")
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	srv := serveTLS(t, u)
	cfg := sources.PublishConfig{URL: srv.repo(), CAFile: srv.caFile(t), Auth: sources.Auth{PasswordFile: secretFile(t, secret)}}
	err := notPublished(t, newPublisher(t, cfg), sources.ErrRejected, "publish on branch quorate/status of "+srv.repo(), "(pre-receive hook declined: branches are protected: ")
	wantNoSecret(t, err, "x-access-token")
}

func TestCredentialsThatMayNotWrite(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		u := written(t)
		srv := serveTLS(t, u)
		srv.first(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("service") != "git-receive-pack" {
				return false
			}
			http.Error(w, "not with "+secret, status)
			return true
		})
		cfg := sources.PublishConfig{URL: srv.repo(), CAFile: srv.caFile(t), Auth: sources.Auth{PasswordFile: secretFile(t, secret)}}
		err := notPublished(t, newPublisher(t, cfg), sources.ErrAuthentication, fmt.Sprint(status), "may write to the repository")
		wantNoSecret(t, err, "x-access-token")
	}
}

// 139: the history is squashed after so many commits, and continues where the server
// does not let it.
func TestHistoryIsCompacted(t *testing.T) {
	for _, tc := range []struct{ allowed, want string }{{"false", "2"}, {"true", "8"}} {
		u := written(t)
		u.git(u.bare, "config", "receive.denyNonFastForwards", tc.allowed)
		p := newPublisher(t, sources.PublishConfig{URL: serve(t, u).repo(), Compact: 3})
		for i := range 8 {
			publish(t, p, fmt.Sprintf("change %d", i))
		}
		if n := u.published(); n != tc.want {
			t.Errorf("with denyNonFastForwards %s there are %s commits, want %s", tc.allowed, n, tc.want)
		}
		if got := u.git(u.bare, "show", statusBranch+":README.md"); got != "# change 7" {
			t.Errorf("it says %q", got)
		}
	}
}

// A branch whose files stay as they are is committed again after its heartbeat, also by another
// process, and also when it is dated in the future; without one, never.
func TestAQuietBranchHasAHeartbeat(t *testing.T) {
	u := written(t)
	repo := serve(t, u).repo()
	for _, step := range []struct {
		beat, after time.Duration
		pushed      bool
	}{
		{time.Hour, 0, true},
		{time.Hour, 59 * time.Minute, false},
		{0, 59 * time.Hour, false},
		{time.Hour, time.Hour, true},
		{time.Hour, time.Hour + time.Minute, false},
		{time.Hour, 0, true},
	} {
		for range 2 {
			p, what := newPublisher(t, sources.PublishConfig{URL: repo, Heartbeat: step.beat}), saying("quiet")
			what.Time = what.Time.Add(step.after)
			if done, err := p.Publish(t.Context(), what); err != nil || done.Pushed != step.pushed {
				t.Errorf("after %s with a heartbeat of %s: pushed %t, %v", step.after, step.beat, done.Pushed, err)
			}
			if done, err := p.Publish(t.Context(), what); err != nil || done.Pushed {
				t.Errorf("after %s with a heartbeat of %s: pushed twice, %v", step.after, step.beat, err)
			}
			step.pushed = false
		}
	}
	if body := u.git(u.bare, "log", "-1", "--format=%b", statusBranch); !strings.Contains(body, "\nQuorate-Heartbeat: 1h0m0s\n") {
		t.Errorf("the commit says %q", body)
	}
	if _, err := sources.NewPublisher(sources.PublishConfig{URL: repo, Owner: "us", Heartbeat: -time.Hour}); err == nil || !strings.Contains(err.Error(), "0 for none") {
		t.Errorf("%v", err)
	}
}

// A server that is away when the history is due to be squashed does not tell whether
// it lets it.
func TestHistoryIsCompactedAfterAnOutage(t *testing.T) {
	u := written(t)
	srv := serve(t, u)
	p := newPublisher(t, sources.PublishConfig{URL: srv.repo(), Compact: 2})
	publish(t, p, "one")
	publish(t, p, "two")
	away := true
	srv.first(func(w http.ResponseWriter, r *http.Request) bool {
		if away && strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
			http.Error(w, "away", http.StatusBadGateway)
			return true
		}
		return false
	})
	notPublished(t, p, sources.ErrUnreachable, "502")
	away = false
	publish(t, p, "three")
	if n := u.published(); n != "1" {
		t.Errorf("%s commits", n)
	}
}

// 139: nor does one that refused it once, as by a hook that failed: it is asked again, so that the branch does not grow
// for as long as this process lives.
func TestHistoryIsCompactedAfterARefusal(t *testing.T) {
	u := written(t)
	p := newPublisher(t, sources.PublishConfig{URL: serve(t, u).repo(), Compact: 3})
	for i := range 3 {
		publish(t, p, fmt.Sprintf("before %d", i))
	}
	hook := filepath.Join(u.bare, "hooks", "pre-receive")
	write(t, hook, "#!/bin/sh\nwhile read old new ref; do git merge-base --is-ancestor $old $new || exit 1; done\n")
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	publish(t, p, "while it refuses")
	if n := u.published(); n != "4" {
		t.Errorf("%s commits while it is refused", n)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"5", "6", "1", "2", "3", "1"} {
		publish(t, p, fmt.Sprintf("after %d", i))
		if n := u.published(); n != want {
			t.Errorf("%d after it there are %s commits, want %s", i, n, want)
		}
	}
}

// Git keeps no branch below another one: that is told, and nobody is taken for another writer.
func TestABranchBelowAnotherOneIsNamed(t *testing.T) {
	for name, url := range map[string]func(u *upstream) string{
		"http": func(u *upstream) string { return serve(t, u).repo() },
		"file": func(u *upstream) string { return u.bare },
	} {
		t.Run(name, func(t *testing.T) {
			u := written(t)
			above := path.Dir(statusBranch)
			u.git(u.bare, "update-ref", above, u.git(u.work, "rev-parse", "HEAD"))
			p := newPublisher(t, sources.PublishConfig{URL: url(u)})
			notPublished(t, p, sources.ErrRejected, above, "name another branch")
			u.git(u.bare, "pack-refs", "--all")
			notPublished(t, p, sources.ErrRejected, above, "name another branch")
			u.git(u.bare, "update-ref", "-d", above)
			publish(t, p, "one")
			u.git(u.bare, "update-ref", "-d", statusBranch)
			u.git(u.bare, "update-ref", statusBranch+"/of/another", u.git(u.work, "rev-parse", "HEAD"))
			p = newPublisher(t, sources.PublishConfig{URL: url(u)})
			notPublished(t, p, sources.ErrRejected, statusBranch+"/of/another", "name another branch")
		})
	}
}

// A lock that a killed Git has left is reported as such, and left to a person.
func TestLockThatIsLeftIsNamed(t *testing.T) {
	u := written(t)
	p := newPublisher(t, sources.PublishConfig{URL: u.bare})
	publish(t, p, "one")
	write(t, filepath.Join(u.bare, statusBranch+".lock"), "")
	notPublished(t, p, sources.ErrUnreachable, "the lock file "+statusBranch+".lock is there; remove it if no Git runs")
	if err := os.Remove(filepath.Join(u.bare, statusBranch+".lock")); err != nil {
		t.Fatal(err)
	}
	publish(t, p, "two")
}

// A signed commit is good for Git itself, and for quorate.
func TestPublishedCommitIsSigned(t *testing.T) {
	dir := t.TempDir()
	(&sshServer{dir: dir}).keygen(t, filepath.Join(dir, "key"))
	entity, public := newPGP(t, "Bot")
	home := t.TempDir()
	for name, tc := range map[string]struct{ key, signers string }{
		"ssh":     {filepath.Join(dir, "key"), "bot@example.com " + readFile(t, filepath.Join(dir, "key.pub"))},
		"openpgp": {secretFile(t, armored(t, entity)), public},
	} {
		t.Run(name, func(t *testing.T) {
			u := written(t)
			u.git(u.bare, "config", "gpg.ssh.allowedSignersFile", secretFile(t, tc.signers))
			if name == "openpgp" {
				t.Setenv("GNUPGHOME", home)
				u.run(needs.Program(t, "gpg"), "--batch", "--quiet", "--import", secretFile(t, tc.signers))
			}
			cfg := sources.PublishConfig{URL: u.bare, Author: "Bot <bot@example.com>", SigningKeyFile: tc.key}
			done := publish(t, newPublisher(t, cfg), "one")
			u.git(u.bare, "verify-commit", done.Commit)
			repo := open(t, sources.Config{URL: u.bare, Branch: "quorate/status", Signers: sources.Signers{File: secretFile(t, tc.signers)}})
			if s := fetch(t, repo); s.Commit != done.Commit {
				t.Errorf("read %s, want %s", s.Commit, done.Commit)
			}
		})
	}
	p := newPublisher(t, sources.PublishConfig{URL: written(t).bare, SigningKeyFile: secretFile(t, secret)})
	wantNoSecret(t, notPublished(t, p, sources.ErrAuthentication, "holds no key that can sign"), "")
}

// armored is an OpenPGP key with its private half.
func armored(t *testing.T, key *openpgp.Entity) string {
	t.Helper()
	var text strings.Builder
	w, err := armor.Encode(&text, openpgp.PrivateKeyType, nil)
	if err == nil {
		err = errors.Join(key.SerializePrivate(w, nil), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestPublishConfigIsChecked(t *testing.T) {
	for says, cfg := range map[string]sources.PublishConfig{
		"no name of a branch":     {URL: "/x", Owner: "us", Branch: "a..b"},
		"give it in the form":     {URL: "/x", Owner: "us", Author: "nobody"},
		"needs an owner":          {URL: "/x"},
		"repository URL":          {Owner: "us"},
		"both a password and a b": {URL: "/x", Owner: "us", Auth: sources.Auth{PasswordFile: "a", BearerTokenFile: "b"}},
	} {
		if _, err := sources.NewPublisher(cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}
