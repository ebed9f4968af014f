package sources_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quorate/quorate/sources"
)

// overSome is everyWay without SSH, which carries the same bytes.
func overSome(t *testing.T, files map[string]string, test func(t *testing.T, u *upstream, open opener)) {
	t.Helper()
	for name, prepare := range map[string]func(*testing.T, *upstream) string{
		"path": func(_ *testing.T, u *upstream) string { return u.bare },
		"http": func(t *testing.T, u *upstream) string { return serve(t, u).repo() },
		"http, filtered": func(t *testing.T, u *upstream) string {
			u.git(u.bare, "config", "uploadpack.allowFilter", "true")
			return serve(t, u).repo()
		},
		"http, protocol 0": func(t *testing.T, u *upstream) string {
			srv := serve(t, u)
			srv.old.Store(true)
			return srv.repo()
		},
		"http, Azure DevOps": func(t *testing.T, u *upstream) string { return serveAzure(t, u, azureOffers).repo() },
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstreamWith(t, files)
			test(t, u, at(prepare(t, u)))
		})
	}
}

// after fetches what comes after a commit.
func after(t *testing.T, repo *sources.Repository, trust sources.Trust, kind error, says ...string) sources.Snapshot {
	t.Helper()
	s, err := repo.FetchAfter(t.Context(), trust)
	if kind != nil {
		wantRefusal(t, s, err, kind, says...)
	} else if err != nil {
		t.Fatal(err)
	}
	return s
}

// I13: only a head that descends from the accepted commit is followed without approval.
func TestHeadMustDescendFromTheAcceptedCommit(t *testing.T) {
	overSome(t, map[string]string{"a.yaml": "1"}, func(t *testing.T, u *upstream, open opener) {
		first := u.git(u.work, "rev-parse", "HEAD")
		u.git(u.work, "checkout", "--quiet", "-b", "side")
		u.git(u.work, "commit", "--quiet", "--allow-empty", "--message", "side")
		u.git(u.work, "checkout", "--quiet", "main")
		second := u.commit("second", map[string]string{"a.yaml": "2"})
		third := u.commit("third", map[string]string{"a.yaml": "3"})
		fetch := func(applied string, kind error, says ...string) sources.Snapshot {
			t.Helper()
			return after(t, open(t, sources.Config{}), sources.Trust{Applied: applied}, kind, says...)
		}
		for _, applied := range []string{"", first, second, third} {
			if got := fetch(applied, nil); got.Commit != third {
				t.Fatalf("after %q: %s, want %s", applied, got.Commit, third)
			}
		}
		u.git(u.work, "merge", "--quiet", "--message", "merge", "side")
		merge := u.push("after the merge")
		if got := fetch(second, nil); got.Commit != merge {
			t.Fatalf("after a merge: %s", got.Commit)
		}

		for name, rewrite := range map[string]func() string{
			"an older commit": func() string { return second },
			"another commit": func() string {
				u.git(u.work, "reset", "--quiet", "--hard", second)
				u.git(u.work, "commit", "--quiet", "--allow-empty", "--message", "other "+t.Name())
				return u.git(u.work, "rev-parse", "HEAD")
			},
			"another repository": func() string {
				u.git(u.work, "checkout", "--quiet", "--orphan", "root")
				u.git(u.work, "commit", "--quiet", "--allow-empty", "--message", "root")
				head := u.git(u.work, "rev-parse", "HEAD")
				u.git(u.work, "checkout", "--quiet", "main")
				u.git(u.work, "branch", "--quiet", "-D", "root")
				return head
			},
		} {
			head := rewrite()
			u.git(u.work, "push", "--quiet", "--force", "origin", head+":refs/heads/main")
			repo := open(t, sources.Config{})
			for range 2 {
				after(t, repo, sources.Trust{Applied: merge}, sources.ErrRewritten, "does not descend from "+merge, "approve "+head)
			}
			// Of a commit that the accepted one contains, a server need not send anything.
			if name != "an older commit" {
				wantHead(t, repo, sources.Trust{Applied: merge}, head, u.git(u.work, "log", "-1", "--format=%s", head))
			}
			after(t, repo, sources.Trust{Applied: merge, Approved: second[:39] + "x"}, sources.ErrRewritten)
			if got := after(t, repo, sources.Trust{Applied: merge, Approved: head}, nil); got.Commit != head {
				t.Errorf("%s, approved: %s", name, got.Commit)
			}
			if got := after(t, refer(t, open, sources.Config{Commit: head}), sources.Trust{Applied: merge}, nil); got.Commit != head {
				t.Errorf("%s, named by its hash: %s", name, got.Commit)
			}
		}
	})
}

// wantHead wants a head that is not followed to be known with its author, also where the
// verdict on it is kept.
func wantHead(t *testing.T, repo *sources.Repository, trust sources.Trust, commit, subject string) {
	t.Helper()
	_, err := repo.FetchAfter(t.Context(), trust)
	if h := sources.HeadOf(err); h.Commit != commit || h.Subject != subject || !strings.HasPrefix(h.Author, "Ada <") || h.When.IsZero() {
		t.Errorf("%v is about %+v, want %s %q", err, h, commit, subject)
	}
}

// A branch that is deleted and made again is the same one if it continues from
// there, and else another history, whatever its name is.
func TestBranchMadeAgainMustGoOn(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "1"})
	applied := u.git(u.work, "rev-parse", "HEAD")
	repo := open(t, sources.Config{URL: serve(t, u).repo()})
	u.git(u.bare, "update-ref", "-d", "refs/heads/main")
	after(t, repo, sources.Trust{Applied: applied}, sources.ErrBranchGone)
	next := u.commit("continue", nil)
	if got := after(t, repo, sources.Trust{Applied: applied}, nil); got.Commit != next {
		t.Errorf("got %s, want %s", got.Commit, next)
	}
	u.git(u.bare, "update-ref", "-d", "refs/heads/main")
	u.git(u.work, "checkout", "--quiet", "--orphan", "again")
	u.git(u.work, "commit", "--quiet", "--message", "again")
	u.git(u.work, "push", "--quiet", "origin", "again:main")
	u.git(u.bare, "gc", "--quiet", "--prune=now") // the server has forgotten what was
	after(t, repo, sources.Trust{Applied: next}, sources.ErrRewritten, "approve ")
}

// A history too long to be read is not one that descends.
func TestHistoryThatCannotBeReadHolds(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "1"})
	first := u.git(u.work, "rev-parse", "HEAD")
	for range 30 {
		u.git(u.work, "commit", "--quiet", "--allow-empty", "--message", "more")
	}
	u.push("last")
	repo := open(t, sources.Config{URL: serve(t, u).repo(), Limits: sources.Limits{Objects: 20}})
	after(t, repo, sources.Trust{Applied: first}, sources.ErrRewritten, "is more than is read", "approve ")
	// A commit that is named itself is followed whatever its history is, and so none is read.
	head := u.git(u.work, "rev-parse", "HEAD")
	repo = refer(t, at(serve(t, u).repo()), sources.Config{Commit: head, Limits: sources.Limits{Objects: 20}})
	if got := after(t, repo, sources.Trust{Applied: first}, nil); got.Commit != head {
		t.Errorf("got %s, want %s", got.Commit, head)
	}
}

// Clocks decide nothing: commits from the past and the future are followed.
func TestClocksOfCommitsDecideNothing(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "1"})
	applied := u.git(u.work, "rev-parse", "HEAD")
	srv := serve(t, u)
	for _, when := range []string{"1990-01-01T00:00:00Z", "2038-01-01T00:00:00Z", "2001-01-01T00:00:00Z"} {
		u.git(u.work, "-c", "alias.at=!GIT_COMMITTER_DATE="+when+" git commit --quiet --allow-empty --message at", "at")
		head := u.push("next")
		if got := after(t, open(t, sources.Config{URL: srv.repo()}), sources.Trust{Applied: applied}, nil); got.Commit != head {
			t.Errorf("%s: got %s, want %s", when, got.Commit, head)
		}
	}
}

// signing makes the upstream sign with its own SSH key, and gives the
// public key.
func (u *upstream) sshSigning(name string) string {
	u.tb.Helper()
	key := u.root + "/" + name
	(&sshServer{}).keygen(u.tb, key)
	u.git(u.work, "config", "gpg.format", "ssh")
	u.git(u.work, "config", "user.signingKey", key)
	u.git(u.work, "config", "commit.gpgSign", "true")
	return readFile(u.tb, key+".pub")
}

// 140: an unsigned commit, or one signed with another key, is not followed; nor
// is a good one on top of it.
func TestEveryCommitSinceTheAcceptedOneIsVerified(t *testing.T) {
	overSome(t, map[string]string{"a.yaml": "1"}, func(t *testing.T, u *upstream, open opener) {
		unsigned := u.git(u.work, "rev-parse", "HEAD")
		stranger := u.sshSigning("stranger")
		friend := u.sshSigning("friend")
		file := secretFile(t, "# who may sign\nada@example.com "+friend)
		fetch := func(applied string, kind error, says ...string) sources.Snapshot {
			t.Helper()
			return after(t, open(t, sources.Config{Signers: sources.Signers{File: file}}), sources.Trust{Applied: applied}, kind, says...)
		}
		fetch("", sources.ErrUntrusted, "commit "+unsigned, "by Ada", "is not signed")
		good := u.commit("signed", map[string]string{"a.yaml": "2"})
		if got := fetch("", nil); got.Commit != good {
			t.Fatalf("got %s", got.Commit)
		}
		fetch(unsigned, nil)
		fine := u.commit("signed", map[string]string{"a.yaml": "3"})
		fetch(good, nil)

		u.git(u.work, "config", "user.signingKey", u.root+"/stranger")
		bad := u.commit("by another", nil)
		u.git(u.work, "config", "user.signingKey", u.root+"/friend")
		head := u.commit("signed again", map[string]string{"a.yaml": "4"})
		fetch(good, sources.ErrUntrusted, "commit "+bad, "SSH key SHA256:", "not allowed")
		fetch(bad, nil)
		repo := open(t, sources.Config{Signers: sources.Signers{File: file}})
		after(t, repo, sources.Trust{Applied: fine}, sources.ErrUntrusted, bad)
		wantHead(t, repo, sources.Trust{Applied: fine}, head, "signed again")
		if got := after(t, repo, sources.Trust{Applied: fine, Approved: head}, nil); got.Commit != head {
			t.Errorf("approved: %s", got.Commit)
		}

		// The keys are read again: now the other one may sign as well.
		repo = open(t, sources.Config{Signers: sources.Signers{File: file}})
		after(t, repo, sources.Trust{Applied: fine}, sources.ErrUntrusted, bad)
		write(t, file, friend+stranger)
		after(t, repo, sources.Trust{Applied: fine}, nil)
	})
}

// 475: an approval counts for the look at the repository that it was given for. What was read by one that did not
// come to be accepted is judged again without it, as what was read after another commit is.
func TestWhatWasReadByAnApprovalIsJudgedWithout(t *testing.T) {
	overSome(t, map[string]string{"a.yaml": "1"}, func(t *testing.T, u *upstream, open opener) {
		signers := sources.Signers{File: secretFile(t, u.sshSigning("friend"))}
		first := u.commit("signed", map[string]string{"a.yaml": "2"})
		u.git(u.work, "config", "commit.gpgSign", "false")
		bad := u.commit("unsigned", map[string]string{"a.yaml": "3"})
		repo := open(t, sources.Config{Signers: signers})
		for range 2 {
			after(t, repo, sources.Trust{Applied: first, Approved: bad}, nil)
			after(t, repo, sources.Trust{Applied: first}, sources.ErrUntrusted, bad)
		}
		u.git(u.work, "config", "commit.gpgSign", "true")
		second := u.commit("signed again", map[string]string{"a.yaml": "4"})
		repo = open(t, sources.Config{})
		after(t, repo, sources.Trust{Applied: first}, nil)
		u.git(u.work, "commit", "--quiet", "--allow-empty", "--message", "accepted by another")
		third := u.git(u.work, "rev-parse", "HEAD")
		u.git(u.work, "push", "--quiet", "origin", third+":refs/heads/other") // the server has it still
		if got := after(t, repo, sources.Trust{Applied: second}, nil); got.Commit != second {
			t.Errorf("got %s, want %s", got.Commit, second)
		}
		after(t, repo, sources.Trust{Applied: third}, sources.ErrRewritten, "does not descend from "+third)
	})
}

// 140: a server may leave out what the accepted commit has in its history, and nothing else:
// an unsigned commit below a signed merge is found though it is not sent.
func TestParentThatIsNotSentHolds(t *testing.T) {
	overSome(t, map[string]string{"a.yaml": "1"}, func(t *testing.T, u *upstream, open opener) {
		friend := u.sshSigning("friend")
		signers := sources.Signers{Secret: secretOf(map[string]string{"ada": friend})}
		fork := u.commit("where the branches begin", nil)
		u.commit("on main", map[string]string{"a.yaml": "2"})
		accepted := u.commit("on main again", map[string]string{"a.yaml": "3"})
		merge := func(name string, sign string) (side, head string) {
			u.git(u.work, "checkout", "--quiet", "-b", name, fork)
			u.git(u.work, "-c", "commit.gpgSign="+sign, "commit", "--quiet", "--allow-empty", "--message", name)
			side = u.git(u.work, "rev-parse", "HEAD")
			u.git(u.work, "checkout", "--quiet", "main")
			u.git(u.work, "merge", "--quiet", "--message", "merge "+name, name)
			return side, u.push("after merging " + name)
		}
		_, head := merge("good", "true")
		_, head2 := merge("older", "true")
		for _, applied := range []string{accepted, head} {
			if got := after(t, open(t, sources.Config{Signers: signers}), sources.Trust{Applied: applied}, nil); got.Commit != u.git(u.work, "rev-parse", "HEAD") {
				t.Fatalf("after %s: %s", applied, got.Commit)
			}
		}
		hidden, _ := merge("hidden", "false")
		m := u.git(u.work, "rev-parse", "HEAD~1")
		write(t, u.bare+"/info/grafts", m+" "+head2+"\n") // the server knows of no other parent
		after(t, open(t, sources.Config{Signers: signers}), sources.Trust{Applied: accepted}, sources.ErrUntrusted, "commit "+hidden)
		after(t, open(t, sources.Config{}), sources.Trust{Applied: accepted}, nil)
	})
}

// What was signed cannot be changed afterwards.
func TestSignatureOfAnotherTextDoesNotFit(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "1"})
	friend := u.sshSigning("friend")
	u.commit("signed", nil)
	raw := u.git(u.work, "cat-file", "commit", "HEAD")
	write(t, u.root+"/forged", strings.Replace(raw, "signed", "forged", 1)+"\n")
	forged := u.git(u.work, "hash-object", "-t", "commit", "-w", u.root+"/forged")
	u.git(u.work, "push", "--quiet", "--force", "origin", forged+":refs/heads/main")
	repo := open(t, sources.Config{URL: u.bare, Signers: sources.Signers{Secret: secretOf(map[string]string{"ada": friend})}})
	after(t, repo, sources.Trust{}, sources.ErrUntrusted, "commit "+forged, "that does not fit")
}

func TestOpenPGPSignatures(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "1"})
	friend, friendKey := newPGP(t, "friend")
	stranger, _ := newPGP(t, "stranger")
	repo := func() *sources.Repository {
		return open(t, sources.Config{URL: u.bare, Signers: sources.Signers{Secret: secretOf(map[string]string{"a": friendKey})}})
	}
	good := u.commitPGP(t, friend)
	if got := after(t, repo(), sources.Trust{}, nil); got.Commit != good {
		t.Errorf("got %s, want %s", got.Commit, good)
	}
	bad := u.commitPGP(t, stranger)
	after(t, repo(), sources.Trust{Applied: good}, sources.ErrUntrusted, "commit "+bad, "OpenPGP key", "not allowed")
}

// Missing keys are not a request to check no signatures.
func TestMissingKeysHold(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "1"})
	for name, signers := range map[string]sources.Signers{
		"no file":     {File: "/nonexistent"},
		"no Secret":   {Secret: secretFails},
		"empty":       {File: secretFile(t, "\n# none\n")},
		"empty too":   {Secret: secretOf(nil)},
		"not a key":   {File: secretFile(t, "words\n")},
		"not armored": {File: secretFile(t, "-----BEGIN PGP PUBLIC KEY BLOCK-----\n")},
	} {
		t.Run(name, func(t *testing.T) {
			after(t, open(t, sources.Config{URL: u.bare, Signers: signers}), sources.Trust{}, sources.ErrUntrusted)
		})
	}
}

var errNoSecret = errors.New("read Secret a/b: not found")
