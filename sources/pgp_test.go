package sources_test

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/go-git/go-git/v5"
)

// newPGP is an OpenPGP key, and its public half in armor.
func newPGP(t *testing.T, name string) (*openpgp.Entity, string) {
	t.Helper()
	entity, err := openpgp.NewEntity(name, "", name+"@example.com", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	w, err := armor.Encode(&text, openpgp.PublicKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := entity.Serialize(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return entity, text.String()
}

// commitPGP commits with an OpenPGP signature, as gpg makes it, and pushes.
func (u *upstream) commitPGP(t *testing.T, key *openpgp.Entity) string {
	t.Helper()
	repo, err := git.PlainOpen(u.work)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	u.git(u.work, "config", "user.name", "Ada")
	u.git(u.work, "config", "user.email", "ada@example.com")
	hash, err := tree.Commit("signed", &git.CommitOptions{AllowEmptyCommits: true, SignKey: key})
	if err != nil {
		t.Fatal(err)
	}
	u.git(u.work, "push", "--quiet", "origin", "main")
	return hash.String()
}

func readFile(tb testing.TB, path string) string {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

func secretFails(context.Context) (map[string][]byte, error) { return nil, errNoSecret }
