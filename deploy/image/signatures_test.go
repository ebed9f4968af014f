package main

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// signer runs cosign with a key of its own, in place of the identity and the logs of sigstore, which
// are not on this machine.
type signer struct {
	*testing.T
	cosign, dir string
}

func (s signer) run(env []string, command string, args ...string) (string, error) {
	cmd := exec.CommandContext(s.Context(), command, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), append(env, "COSIGN_PASSWORD=none", "PATH="+s.dir+":"+os.Getenv("PATH"))...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// newSigner makes a pair of keys, and a cosign that signs with it whatever it is told to sign.
func newSigner(t *testing.T, cosign string) signer {
	t.Helper()
	s := signer{t, cosign, t.TempDir()}
	if out, err := s.run(nil, cosign, "generate-key-pair"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	script := fmt.Sprintf("#!/bin/sh\nverb=$1\nshift\nexec %s \"$verb\" --key %s/cosign.key --use-signing-config=false --tlog-upload=false \"$@\"\n", cosign, s.dir)
	if err := os.WriteFile(filepath.Join(s.dir, "cosign"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// verify verifies with the key of the signer.
func (s signer) verify(verb string, args ...string) (string, error) {
	return s.run(nil, s.cosign, append([]string{verb, "--key", filepath.Join(s.dir, "cosign.pub"), "--insecure-ignore-tlog"}, args...)...)
}

// signing are the commands of the release that sign, with the registry in place of GitHub's.
func signing(t *testing.T, registry string) (commands []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", ".github", "workflows", "release.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if _, command, is := strings.Cut(line, "- run: cosign "); is {
			commands = append(commands, "cosign "+strings.ReplaceAll(strings.TrimSpace(command), "ghcr.io", registry))
		}
	}
	return commands
}

// The commands of a release sign its image, what the image consists of, its chart and its archives,
// and nothing else passes for these: another image, other archives, another key.
func TestAReleaseIsSigned(t *testing.T) {
	cosign := os.Getenv("QUORATE_COSIGN")
	if cosign == "" {
		t.Skip("needs cosign: `make signatures` builds it and runs this")
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	s, other := newSigner(t, cosign), newSigner(t, cosign)

	root := cloneOf(t, small(t))
	bin := filepath.Join(s.dir, "bin")
	index, sbom, err := build(t.Context(), root, both)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(index, sbom, bin, "v1.2.3"); err != nil {
		t.Fatal(err)
	}
	archivesOf(t, root)
	if err := os.Rename(filepath.Join(root, "bin", "archives"), filepath.Join(bin, "archives")); err != nil {
		t.Fatal(err)
	}
	pushed := func(repository string, index v1.ImageIndex) string {
		if err := push(t.Context(), index, repository+":v1.2.3"); err != nil {
			t.Fatal(err)
		}
		return repository + "@" + digestOf(t, index).String()
	}
	image := pushed(host+"/quorate/quorate", index)
	chart := pushed(host+"/quorate/charts/quorate", index) // any content will do
	unsigned, _ := built(t, root, both[0])
	another := pushed(host+"/quorate/quorate", unsigned)

	commands := signing(t, host)
	if len(commands) != 4 {
		t.Fatalf("the release signs with %q", commands)
	}
	for _, command := range commands {
		digest := "DIGEST=" + digestOf(t, index).String()
		if out, err := s.run([]string{"GITHUB_REPOSITORY=quorate/quorate", "GITHUB_REPOSITORY_OWNER=quorate", digest}, "bash", "-euc", command); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}

	sums := filepath.Join(bin, "archives", "SHA256SUMS")
	bundle := sums + ".sigstore.json"
	altered := filepath.Join(s.dir, "altered")
	text, err := os.ReadFile(sums)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(altered, append([]byte("0"), text[1:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		as   signer
		args []string
		// want is in what cosign says where it refuses; "" where it does not.
		want string
	}{
		{"the image", s, []string{"verify", image}, ""},
		{"the list of what is in it", s, []string{"verify-attestation", "--type", "spdxjson", image}, ""},
		{"the chart", s, []string{"verify", chart}, ""},
		{"the archives", s, []string{"verify-blob", "--bundle", bundle, sums}, ""},
		{"another image", s, []string{"verify", another}, "no signatures found"},
		{"another image's list", s, []string{"verify-attestation", "--type", "spdxjson", another}, "no matching attestations"},
		{"other archives", s, []string{"verify-blob", "--bundle", bundle, altered}, "invalid signature"},
		{"the image by another key", other, []string{"verify", image}, "signatures do not match"},
		{"the list by another key", other, []string{"verify-attestation", "--type", "spdxjson", image}, "signatures do not match"},
		{"the archives by another key", other, []string{"verify-blob", "--bundle", bundle, sums}, "invalid signature"},
	} {
		out, err := c.as.verify(c.args[0], c.args[1:]...)
		if (err == nil) != (c.want == "") || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v, want %q\n%s", c.what, err, c.want, out)
		}
	}
}
