package sources_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/quorate/quorate/sources"
)

// release makes a signed tag of a commit, at a time by the tagger's clock.
func (u *upstream) release(name, commit, when string) {
	u.tb.Helper()
	u.git(u.work, "-c", "alias.at=!GIT_COMMITTER_DATE="+when+" git tag -f -s -m words "+name+" "+commit, "at")
	u.pushTags()
}

// pushTags makes the tags of the upstream those of its working tree.
func (u *upstream) pushTags() {
	u.tb.Helper()
	u.git(u.work, "push", "--quiet", "--force", "--prune", "origin", "refs/tags/*:refs/tags/*")
}

const lately = "2024-05-02T10:00:00Z"

// ofAda are signers with one SSH key.
func ofAda(public string) sources.Signers {
	return sources.Signers{Secret: secretOf(map[string]string{"allowed_signers": "ada@example.com " + public})}
}

// wantTag wants a snapshot by a tag that Ada has signed.
func wantTag(t *testing.T, s sources.Snapshot, name, commit string) {
	t.Helper()
	if s.Commit != commit || s.Tag.Name != name || !strings.HasSuffix(s.Tag.Signer, " of ada@example.com") || s.Tag.Object == commit {
		t.Errorf("got commit %s by tag %+v, want %s by %s", s.Commit, s.Tag, commit, name)
	}
}

// 140: where commits must be signed, so must be the tag that is followed, by its own name and
// for its own commit.
func TestFollowedTagMustBeSigned(t *testing.T) {
	everyWay(t, map[string]string{"a.yaml": "1"}, func(t *testing.T, u *upstream, open opener) {
		unsigned := u.git(u.work, "rev-parse", "HEAD")
		u.sshSigning("stranger")
		friend := u.sshSigning("friend")
		head := u.commit("signed", map[string]string{"a.yaml": "2"})
		u.release("v1.0.0", head, lately)
		u.release("old", unsigned, lately)
		u.git(u.work, "tag", "light", head)
		u.git(u.work, "tag", "--no-sign", "--annotate", "--message", "words", "words", head)
		u.git(u.work, "-c", "user.signingKey="+u.root+"/stranger", "tag", "-s", "-m", "words", "foreign", head)
		u.git(u.work, "tag", "-s", "-m", "words", "nested", "v1.0.0")
		u.git(u.work, "tag", "-s", "-m", "words", "tree", head+"^{tree}")
		u.git(u.work, "update-ref", "refs/tags/v2.0.0", "v1.0.0")
		u.git(u.work, "update-ref", "refs/tags/deep/v1.0.0", "v1.0.0")
		u.pushTags()
		follow := func(tag string) *sources.Repository {
			return refer(t, open, sources.Config{Tag: tag, Signers: ofAda(friend)})
		}
		// A login takes longer than all else, and no signature depends on the transport: over SSH each tag is
		// refused once.
		once := strings.Contains(t.Name(), "/ssh")

		repo := follow("v1.0.0")
		for range 2 {
			wantTag(t, after(t, repo, sources.Trust{}, nil), "v1.0.0", head)
		}
		wantTag(t, after(t, follow("v1.0.0"), sources.Trust{Applied: unsigned}, nil), "v1.0.0", head)
		for tag, says := range map[string]string{
			"light":       "tag light is a lightweight one, which has no signature: whoever may push tags could have put it at commit " + head,
			"words":       "tag words is not signed; tag the commit with `git tag -s`",
			"foreign":     "tag foreign is signed with SSH key SHA256:",
			"nested":      "tag nested is a tag of another tag",
			"v2.0.0":      "tag v2.0.0 is the signed tag v1.0.0 under another name",
			"deep/v1.0.0": "tag deep/v1.0.0 is the signed tag v1.0.0 under another name",
			"old":         "commit " + unsigned + " by Ada",
		} {
			repo := follow(tag)
			for _, applied := range []string{"", unsigned} {
				if tag == "old" && applied == unsigned || once && tag != "old" && applied == "" {
					continue
				}
				after(t, repo, sources.Trust{Applied: applied}, sources.ErrUntrusted, says)
				if !once {
					after(t, repo, sources.Trust{Applied: applied}, sources.ErrUntrusted, says)
				}
			}
			if tag == "old" || once && tag != "light" {
				continue
			}
			wantHead(t, repo, sources.Trust{Applied: unsigned}, head, "signed")
			if got := after(t, repo, sources.Trust{Applied: unsigned, Approved: head}, nil); got.Commit != head || got.Tag.Name != tag || got.Tag.Signer != "" {
				t.Errorf("%s, approved: %s by %+v", tag, got.Commit, got.Tag)
			}
			if got := after(t, refer(t, open, sources.Config{Tag: tag}), sources.Trust{Applied: unsigned}, nil); got.Commit != head || got.Tag.Name != tag {
				t.Errorf("%s, without signers: %s by %+v", tag, got.Commit, got.Tag)
			}
		}
		if _, err := follow("tree").FetchAfter(t.Context(), sources.Trust{}); err == nil {
			t.Error("a tag of a tree is followed")
		}
	})
}

// 140: of a range of versions the highest tag counts. One that is not signed is not passed over for
// one below it, which would keep an old version in force for as long as somebody likes.
func TestHighestTagIsNotPassedOver(t *testing.T) {
	overSome(t, map[string]string{"a.yaml": "1"}, func(t *testing.T, u *upstream, open opener) {
		friend := u.sshSigning("friend")
		first := u.commit("one", map[string]string{"a.yaml": "1.0"})
		second := u.commit("two", map[string]string{"a.yaml": "1.1"})
		u.release("v1.0.0", first, lately)
		repo := refer(t, open, sources.Config{Semver: "1.x", Signers: ofAda(friend)})
		trust := sources.Trust{}
		fetch := func(kind error, says ...string) sources.Snapshot {
			t.Helper()
			s := after(t, repo, trust, kind, says...)
			if kind == nil {
				trust = sources.Trust{Applied: s.Commit, Tag: s.Tag}
			}
			return s
		}
		wantTag(t, fetch(nil), "v1.0.0", first)
		u.git(u.work, "tag", "v1.9.0", second)
		u.release("v1.1.0", second, lately)
		fetch(sources.ErrUntrusted, "tag v1.9.0 is a lightweight one", "delete the tag if it is not meant")
		u.git(u.work, "tag", "--delete", "v1.9.0")
		u.pushTags()
		wantTag(t, fetch(nil), "v1.1.0", second)

		// Nor does one at the commit in force keep those away that come.
		u.git(u.work, "tag", "v1.9.0", second)
		u.pushTags()
		fetch(sources.ErrUntrusted, "tag v1.9.0 is a lightweight one")
		u.release("v1.9.0", second, lately)
		wantTag(t, fetch(nil), "v1.9.0", second)

		// Without the highest the next one below is a step back, which the history tells.
		u.git(u.work, "tag", "--delete", "v1.1.0", "v1.9.0")
		u.pushTags()
		fetch(sources.ErrRewritten, "does not descend from "+second)
	})
}

// 140: a tag that was accepted stays so, though its key has ended since, and so does one of
// which no more is known than its commit, as after an update of quorate.
func TestAcceptedTagStaysAccepted(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "1"})
	friend := u.sshSigning("friend")
	head := u.commit("signed", nil)
	u.release("v1.0.0", head, lately)
	u.git(u.work, "tag", "light", head)
	u.pushTags()
	follow := func(tag, options string) *sources.Repository {
		return refer(t, at(u.bare), sources.Config{Tag: tag, Signers: sources.Signers{Secret: secretOf(map[string]string{"allowed_signers": "ada@example.com " + options + friend})}})
	}
	got := after(t, follow("v1.0.0", ""), sources.Trust{}, nil)
	const over = `valid-before="20250101Z" `
	after(t, follow("v1.0.0", over), sources.Trust{}, sources.ErrUntrusted, "2025-01-01T00:00:00Z only")
	wantTag(t, after(t, follow("v1.0.0", over), sources.Trust{Applied: head, Tag: got.Tag}, nil), "v1.0.0", head)
	after(t, follow("light", ""), sources.Trust{Applied: head, Tag: got.Tag}, sources.ErrUntrusted, "lightweight")
	if got := after(t, follow("light", ""), sources.Trust{Applied: head}, nil); got.Tag != (sources.Tag{Name: "light", Object: head}) {
		t.Errorf("got %+v", got.Tag)
	}
}

// 140: the limits of a line of allowed_signers are kept to by the date of the tag, too.
func TestLimitsOfAllowedSignersAreKeptForTags(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "1"})
	friend := u.sshSigning("friend")
	other := u.sshSigning("other")
	head := u.signedAt("2024-05-02T10:00:00Z") // by the other key, without limits
	u.git(u.work, "config", "user.signingKey", u.root+"/friend")
	u.release("past", head, "2024-05-02T10:00:00Z")
	u.release("future", head, "2090-01-01T00:00:00Z")
	for _, c := range []struct{ tag, options, says string }{
		{"past", ``, ""},
		{"future", `valid-before="21000101Z" `, ""},
		{"past", `valid-before="20250101Z" `, " of ada@example.com, which is allowed until 2025-01-01T00:00:00Z only;"},
		{"future", `valid-before="20800101Z" `, "which is allowed until 2080-01-01T00:00:00Z only, and the date is later"},
		{"past", `valid-after="20240601Z" `, "which is allowed from 2024-06-01T00:00:00Z on only, and the date is earlier"},
		{"past", `namespaces="file" `, "other namespaces than git"},
	} {
		lines := "bob@example.com " + other + "ada@example.com " + c.options + friend
		repo := refer(t, at(u.bare), sources.Config{Tag: c.tag, Signers: sources.Signers{Secret: secretOf(map[string]string{"allowed_signers": lines})}})
		if c.says != "" {
			after(t, repo, sources.Trust{}, sources.ErrUntrusted, "tag "+c.tag+" is signed with SSH key", c.says)
			continue
		}
		s := after(t, repo, sources.Trust{}, nil)
		wantTag(t, s, c.tag, head)
		if !strings.HasSuffix(s.Signer, " of bob@example.com") {
			t.Errorf("the commit is signed by %q", s.Signer)
		}
	}
}

// 140: what the server says that a tag means counts for nothing: the commit is signed with it.
func TestTagMeansTheCommitThatItIsSignedFor(t *testing.T) {
	for name, old := range map[string]bool{"protocol 2": false, "protocol 0": true} {
		t.Run(name, func(t *testing.T) {
			u := newUpstreamWith(t, map[string]string{"a.yaml": "1"})
			friend := u.sshSigning("friend")
			first := u.commit("first", nil)
			second := u.commit("not to be applied yet", nil)
			u.release("v1.0.0", first, lately)
			srv := serve(t, u)
			srv.old.Store(old)
			repo := refer(t, at(srv.repo()), sources.Config{Tag: "v1.0.0", Signers: ofAda(friend)})
			good := after(t, repo, sources.Trust{}, nil)
			wantTag(t, good, "v1.0.0", first)
			tag := []byte(good.Tag.Object)
			srv.first(func(w http.ResponseWriter, r *http.Request) bool {
				asked, err := io.ReadAll(r.Body)
				if err != nil {
					return false
				}
				if !bytes.Contains(asked, []byte("have "+second)) { // which asks for the tag itself
					asked = bytes.ReplaceAll(asked, tag, []byte(second))
				}
				r.Body = io.NopCloser(bytes.NewReader(asked))
				answer := httptest.NewRecorder()
				srv.backend.ServeHTTP(answer, r)
				for name, values := range answer.Header() {
					w.Header()[name] = values
				}
				w.WriteHeader(answer.Code)
				_, _ = w.Write(bytes.ReplaceAll(answer.Body.Bytes(), []byte(first), []byte(second)))
				return true
			})
			repo = refer(t, at(srv.repo()), sources.Config{Tag: "v1.0.0", Signers: ofAda(friend)})
			for _, trust := range []sources.Trust{{}, {Applied: first}, {Applied: first, Tag: good.Tag}} {
				after(t, repo, trust, sources.ErrUntrusted, "tag v1.0.0 is signed for the commit "+first+", and not for commit "+second)
			}
		})
	}
}

// rawTag puts a tag of these bytes on the server, as Git itself would not push it.
func (u *upstream) rawTag(name, text string) {
	u.tb.Helper()
	write(u.tb, u.root+"/raw", text)
	hash := u.git(u.bare, "hash-object", "-t", "tag", "--literally", "-w", u.root+"/raw")
	write(u.tb, u.bare+"/refs/tags/"+name, hash+"\n")
}

// What was signed cannot be changed afterwards, and a tag that two readers may understand
// differently is refused whatever its signature is.
func TestTagsThatAreNotAsGitWritesThem(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "1"})
	friend := u.sshSigning("friend")
	head := u.commit("signed", nil)
	u.release("v1.0.0", head, lately)
	raw := u.git(u.work, "cat-file", "tag", "v1.0.0") + "\n"
	tagger := "tagger Bot <bot@example.com> 1714644000 +0000\n"
	if !strings.Contains(raw, tagger) {
		t.Fatalf("the tag is\n%s", raw)
	}
	for name, text := range map[string]string{
		"does not fit":                 strings.Replace(raw, "words", "other", 1),
		"more headers than Git writes": strings.Replace(raw, tagger, tagger+"tag v9.0.0\n", 1),
		"X.509 signature":              strings.ReplaceAll(raw, "SSH SIGNATURE", "SIGNED MESSAGE"),
		"a signature that cannot be read": raw[:strings.Index(raw, "-----BEGIN")] +
			"-----BEGIN SSH SIGNATURE-----\nwords\n-----END SSH SIGNATURE-----\n",
	} {
		u.rawTag("v1.0.0", text)
		after(t, refer(t, at(u.bare), sources.Config{Tag: "v1.0.0", Signers: ofAda(friend)}), sources.Trust{}, sources.ErrUntrusted, "tag v1.0.0 ", name)
	}
	u.rawTag("v1.0.0", raw)
	wantTag(t, after(t, refer(t, at(u.bare), sources.Config{Tag: "v1.0.0", Signers: ofAda(friend)}), sources.Trust{}, nil), "v1.0.0", head)
}

func TestOpenPGPSignaturesOfTags(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "1"})
	friend, friendKey := newPGP(t, "friend")
	stranger, _ := newPGP(t, "stranger")
	head := u.commitPGP(t, friend)
	repo, err := git.PlainOpen(u.work)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]*git.CreateTagOptions{"v1.0.0": {SignKey: friend}, "v2.0.0": {SignKey: stranger}} {
		key.Message = "words"
		if _, err := repo.CreateTag(name, plumbing.NewHash(head), key); err != nil {
			t.Fatal(err)
		}
	}
	u.pushTags()
	follow := func(tag string) *sources.Repository {
		return refer(t, at(serve(t, u).repo()), sources.Config{Tag: tag, Signers: sources.Signers{Secret: secretOf(map[string]string{"a": friendKey})}})
	}
	got := after(t, follow("v1.0.0"), sources.Trust{}, nil)
	if got.Commit != head || !strings.HasPrefix(got.Tag.Signer, "OpenPGP key ") {
		t.Errorf("got %s by %+v", got.Commit, got.Tag)
	}
	after(t, follow("v2.0.0"), sources.Trust{}, sources.ErrUntrusted, "tag v2.0.0 is signed with OpenPGP key", "not allowed")
}
