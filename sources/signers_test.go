package sources_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/sources"
)

// signedAt commits with a signature, at a time by the committer's clock.
func (u *upstream) signedAt(when string) string {
	u.tb.Helper()
	u.git(u.work, "-c", "alias.at=!GIT_COMMITTER_DATE="+when+" git commit --quiet --allow-empty --message at", "at")
	u.git(u.work, "push", "--quiet", "origin", "main")
	return u.git(u.work, "rev-parse", "HEAD")
}

// trusting follows the upstream with these lines about who may sign.
func (u *upstream) trusting(lines string) *sources.Repository {
	u.tb.Helper()
	return open(u.tb, sources.Config{URL: u.bare, Signers: sources.Signers{Secret: secretOf(map[string]string{"allowed_signers": lines})}})
}

// 140: the limits of a line of allowed_signers are kept to, both now and at the date of
// the commit: the date alone is the word of whoever signs.
func TestLimitsOfAllowedSignersAreKept(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "1"})
	friend := u.sshSigning("friend")
	past, future := u.signedAt("2024-05-02T10:00:00Z"), u.signedAt("2090-01-01T00:00:00Z")
	for _, c := range []struct{ commit, options, says string }{
		{past, ``, ""},
		{past, `valid-before="29990101Z" `, ""},
		{past, `VALID-AFTER="20240101",valid-before="299901010000Z" `, ""},
		{past, `valid-after="20240502100000Z" `, ""},
		{past, `namespaces="file,git" `, ""},
		{past, `namespaces="g?t" `, ""},
		{past, `valid-before="20250101Z" `, "SHA256:"},
		{past, `valid-before="20250101Z" `, " of ada@example.com, which is allowed until 2025-01-01T00:00:00Z only;"}, // backdated
		{future, `valid-before="20800101utc" `, "which is allowed until 2080-01-01T00:00:00Z only, and the date is later"},
		{past, `valid-after="20240601Z" `, "which is allowed from 2024-06-01T00:00:00Z on only, and the date is earlier"},
		{future, `valid-after="20890101Z" `, "which is allowed from 2089-01-01T00:00:00Z on only;"},
		{past, `namespaces="file" `, "other namespaces than git"},
		{past, `namespaces="*,!git" `, "other namespaces than git"},
	} {
		u.git(u.bare, "update-ref", "refs/heads/main", c.commit)
		repo := u.trusting("# who may sign\nada@example.com " + c.options + friend)
		if c.says != "" {
			after(t, repo, sources.Trust{}, sources.ErrUntrusted, "commit "+c.commit, "is signed with SSH key SHA256:", c.says)
			continue
		}
		s := after(t, repo, sources.Trust{}, nil)
		if !strings.HasPrefix(s.Signer, "SSH key SHA256:") || !strings.HasSuffix(s.Signer, " of ada@example.com") {
			t.Errorf("%s: signed by %q", c.options, s.Signer)
		}
	}
}

// One line that allows a commit is enough, wherever it stands.
func TestKeyOfSeveralLinesCountsByOneOfThem(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "1"})
	friend := u.sshSigning("friend")
	head := u.signedAt("2024-05-02T10:00:00Z")
	over, good := `old@example.com valid-before="20250101Z" `+friend, `new@example.com `+friend
	for _, lines := range []string{over + good, good + over} {
		if s := after(t, u.trusting(lines), sources.Trust{}, nil); !strings.HasSuffix(s.Signer, " of new@example.com") {
			t.Errorf("signed by %q", s.Signer)
		}
	}
	s := after(t, u.trusting(over), sources.Trust{Approved: head}, nil)
	if s.Signer != "" {
		t.Errorf("approved, and signed by %q", s.Signer)
	}
}

// 140: a signature by a certificate is told as what it is, and counts for none.
func TestSignatureByACertificateIsTold(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "1"})
	friend := u.sshSigning("friend")
	headers, message, _ := strings.Cut(u.git(u.work, "cat-file", "commit", "HEAD"), "\n\n")
	write(t, u.root+"/signed", headers+"\ngpgsig -----BEGIN SIGNED MESSAGE-----\n MIIEBwYJKoZIhvcNAQcCoIID\n -----END SIGNED MESSAGE-----\n\n"+message+"\n")
	signed := u.git(u.work, "hash-object", "-t", "commit", "-w", u.root+"/signed")
	u.git(u.work, "push", "--quiet", "--force", "origin", signed+":refs/heads/main")
	after(t, u.trusting(friend), sources.Trust{}, sources.ErrUntrusted, "commit "+signed, "has an X.509 signature, such as of gitsign or S/MIME, which quorate does not verify")
}

// Names may be in quotes, and an authorized_keys line has none.
func TestFormsOfSignersLines(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "1"})
	friend := u.sshSigning("friend")
	u.signedAt("2024-05-02T10:00:00Z")
	for line, whose := range map[string]string{
		friend: "",
		"ada@example.com,*@example.org " + friend: " of ada@example.com,*@example.org",
		"ada@example.com\t" + friend:              " of ada@example.com",
		`"ada@example.com" ` + friend:             " of ada@example.com",
		`"a b" namespaces="git" ` + friend:        " of a b",
	} {
		s := after(t, u.trusting(line), sources.Trust{}, nil)
		if name, of, _ := strings.Cut(s.Signer, " of "); !strings.HasPrefix(name, "SSH key SHA256:") || of != strings.TrimPrefix(whose, " of ") {
			t.Errorf("%q: signed by %q", line, s.Signer)
		}
	}
}

// 140: what a line limits and quorate cannot keep to is refused, and never left out: the key
// of an authority, above all, is nobody's own.
func TestSignersLinesThatCannotBeKeptToAreRefused(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "1"})
	friend := u.sshSigning("friend")
	u.signedAt("2024-05-02T10:00:00Z")
	u.run("ssh-keygen", "-q", "-s", u.root+"/friend", "-I", "ada", "-n", "ada@example.com", u.root+"/friend.pub")
	certificate := readFile(t, u.root+"/friend-cert.pub")
	for line, says := range map[string]string{
		`ada@example.com cert-authority ` + friend:                                   "certificate authority, and quorate verifies no certificates: give the public keys of those who sign",
		`*@example.com CERT-AUTHORITY,namespaces="git" ` + friend:                    "certificate authority",
		`cert-authority ` + friend:                                                   "it begins with the option cert-authority: write it as a line of allowed_signers, with a name in front",
		`no-pty,cert-authority ` + friend:                                            "it begins with the option cert-authority",
		`"ada",cert-authority ` + friend:                                             "certificate authority",
		`valid-before="20250101" ` + friend:                                          "it begins with the option valid-before",
		`from="10.0.0.0/8,10.1.0.0/16" ` + friend:                                    `it begins with the option from="10.0.0.0/8`,
		`ada@example.com ` + certificate:                                             "it is a certificate",
		certificate:                                                                  "it is a certificate",
		`ada@example.com expiry-time="20250101" ` + friend:                           "quorate does not know its option expiry-time",
		`ada@example.com no-pty ` + friend:                                           "quorate does not know its option no-pty",
		`ada@example.com valid-before=20990101 ` + friend:                            "option valid-before: its value is not in quotes",
		`ada@example.com valid-before="2025" ` + friend:                              "option valid-before: it is no time: give one such as 20260131",
		`ada@example.com valid-before="20251301" ` + friend:                          "option valid-before: it is no time",
		`ada@example.com valid-before="20990101",valid-before="20980101" ` + friend:  "the option valid-before twice",
		`ada@example.com valid-after="20260101Z",valid-before="20250101Z" ` + friend: "never counts",
		`ada@example.com namespaces="[g]it" ` + friend:                               "option namespaces: a namespace has letters",
		`ada@example.com valid-before="20990101 ` + friend:                           "it is no public key",
		"words": "it is no public key",
	} {
		repo := u.trusting("# who may sign\n" + line)
		after(t, repo, sources.Trust{}, sources.ErrUntrusted, "line 2 of allowed_signers says nobody who may sign: ", says, "no new commit is followed until it is corrected")
	}
}
