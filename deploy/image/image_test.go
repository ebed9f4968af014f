package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var both = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}

// git runs Git in a directory, as somebody whom no setting of this machine knows.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=2026-03-01T12:00:00Z", "GIT_COMMITTER_DATE=2026-03-01T12:00:00Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

const smallQuorate = `package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == "docs" {
		if err := os.MkdirAll(os.Args[3], 0o755); err != nil {
			panic(err)
		}
		if err := os.WriteFile(os.Args[3]+"/quorate.1", []byte(".TH\n"), 0o600); err != nil {
			panic(err)
		}
	}
	fmt.Println(os.Args[1:], os.Getenv("POD_NAMESPACE"))
}
`

// small is a checkout with the commands of this one and next to nothing in them: its image is
// built in seconds for any platform. Its quorate says what it was asked for, and writes a man page.
func small(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range map[string]string{
		"go.mod":                    "module github.com/quorate/quorate\n\ngo 1.26.0\n",
		"cmd/quorate/main.go":       smallQuorate,
		"LICENSE":                   "Take it.\n",
		"README.md":                 "# quorate\n",
		"cmd/quorate-guard/main.go": "package main\n\nfunc main() { println(\"guard\") }\n",
	} {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	copied(t, dir, "Makefile", ".goreleaser.yaml", ".gitignore")
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "Begin")
	git(t, dir, "tag", "v1.2.3")
	return dir
}

// cloneOf clones a checkout into a directory of its own, below others.
func cloneOf(t *testing.T, of string, below ...string) string {
	t.Helper()
	dir := filepath.Join(append([]string{t.TempDir()}, below...)...)
	git(t, ".", "clone", "-q", of, dir)
	return dir
}

func built(t *testing.T, root string, platforms ...v1.Platform) (v1.ImageIndex, document) {
	t.Helper()
	index, text, err := build(t.Context(), root, platforms)
	if err != nil {
		t.Fatal(err)
	}
	var sbom document
	if err := json.Unmarshal(text, &sbom); err != nil {
		t.Fatal(err)
	}
	return index, sbom
}

func digestOf(t *testing.T, index v1.ImageIndex) v1.Hash {
	t.Helper()
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// imageOf is the image of one platform.
func imageOf(t *testing.T, index v1.ImageIndex, architecture string) v1.Image {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		if m.Platform.OS == "linux" && m.Platform.Architecture == architecture {
			image, err := index.Image(m.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return image
		}
	}
	t.Fatalf("no image for %s in %+v", architecture, manifest.Manifests)
	return nil
}

// contents are the files of an image.
func contents(t *testing.T, image v1.Image) (headers map[string]*tar.Header, files map[string][]byte) {
	t.Helper()
	headers, files = map[string]*tar.Header{}, map[string][]byte{}
	from := mutate.Extract(image)
	defer func() { _ = from.Close() }()
	for archive := tar.NewReader(from); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return headers, files
		}
		if err == nil {
			at := strings.TrimSuffix(h.Name, "/")
			headers[at] = h
			files[at], err = io.ReadAll(archive)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Two clones at two paths, on machines with different settings of Go, give one image for every
// platform; another commit gives another.
func TestTwoClonesGiveOneImage(t *testing.T) {
	origin := small(t)
	a, _ := built(t, cloneOf(t, origin, "here"), both...)
	there := cloneOf(t, origin, "somewhere", "else", "deeper")
	t.Setenv("GOFLAGS", "-tags=other")
	t.Setenv("GOAMD64", "v3")
	b, _ := built(t, there, both...)
	if digestOf(t, a) != digestOf(t, b) {
		t.Errorf("%s and %s", digestOf(t, a), digestOf(t, b))
	}
	git(t, there, "commit", "-q", "--allow-empty", "-m", "Go on")
	if c, _ := built(t, there, both...); digestOf(t, c) == digestOf(t, b) {
		t.Error("another commit has the same image")
	}
}

// quorate itself gives one image from two clones, which is what docs/install.md says of it.
func TestQuorateIsOneImage(t *testing.T) {
	origin := git(t, ".", "rev-parse", "--show-toplevel")
	here := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	a, sbom := built(t, cloneOf(t, origin, "here"), here)
	b, _ := built(t, cloneOf(t, origin, "somewhere", "else"), here)
	if digestOf(t, a) != digestOf(t, b) {
		t.Errorf("%s and %s", digestOf(t, a), digestOf(t, b))
	}
	image := imageOf(t, a, runtime.GOARCH)
	_, files := contents(t, image)
	t.Run("it says its commit", func(t *testing.T) { saysItsCommit(t, image, files, git(t, ".", "rev-parse", "HEAD")) })
	t.Run("its modules are listed", func(t *testing.T) { listsModules(t, sbom, digestOf(t, a)) })
}

// saysItsCommit runs the binary of the image: it and the labels name the commit.
func saysItsCommit(t *testing.T, image v1.Image, files map[string][]byte, commit string) {
	path := filepath.Join(t.TempDir(), "quorate")
	if err := os.WriteFile(path, files["usr/local/bin/quorate"], 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "version", "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var says struct {
		Version, Commit, CommitTime, GoVersion, Platform string
		Modified                                         bool
	}
	if err := json.Unmarshal(out, &says); err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	label := func(key string) string { return config.Config.Labels["org.opencontainers.image."+key] }
	if says.Commit != commit || says.Modified || label("revision") != commit || label("version") != says.Version || label("created") != says.CommitTime ||
		says.Version == "development" || says.Platform != "linux/"+runtime.GOARCH || !strings.HasPrefix(says.GoVersion, "go1") {
		t.Errorf("it says %+v, the labels are %v, and the commit is %s", says, config.Config.Labels, commit)
	}
}

// listsModules compares the list with go.mod, and judges its form.
func listsModules(t *testing.T, sbom document, digest v1.Hash) {
	ids, versions := map[string]bool{sbom.ID: true}, map[string]string{}
	for _, p := range sbom.Packages {
		if ids[p.ID] {
			t.Errorf("%s is there twice", p.ID)
		}
		ids[p.ID], versions[p.Name] = true, p.Version
	}
	for _, r := range sbom.Relationships {
		if !ids[r.From] || !ids[r.To] {
			t.Errorf("no package for %+v", r)
		}
	}
	gomod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{"k8s.io/client-go", "go.etcd.io/etcd/client/v3", "github.com/go-git/go-git/v5", "google.golang.org/grpc"} {
		if version := versions[module]; version == "" || !strings.Contains(string(gomod), module+" "+version+"\n") {
			t.Errorf("%s is listed as %q", module, version)
		}
	}
	if versions[repository] != digest.String() || versions["stdlib"] != runtime.Version() || versions[product] == "" || versions[roots] == "" || sbom.Version != "SPDX-2.3" {
		t.Errorf("%s with %d packages: %v", sbom.Version, len(sbom.Packages), versions)
	}
}

// The image runs as a user that is not root, and has what static binaries look for, and no more.
func TestTheImageHasWhatItsBinariesNeed(t *testing.T) {
	index, _ := built(t, small(t), both...)
	for architecture, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		image := imageOf(t, index, architecture)
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		c := config.Config
		if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/local/bin/quorate"}) || !slices.Equal(c.Cmd, []string{"run"}) || config.Architecture != architecture || config.OS != "linux" {
			t.Errorf("%s: %+v", architecture, config)
		}
		for key, want := range map[string]string{
			"source": "https://github.com/quorate/quorate", "licenses": "Apache-2.0", "version": "v1.2.3", "created": "2026-03-01T12:00:00Z",
		} {
			if got := c.Labels["org.opencontainers.image."+key]; got != want {
				t.Errorf("%s is %q", key, got)
			}
		}
		headers, files := contents(t, image)
		for _, b := range []string{"usr/local/bin/quorate", "usr/local/bin/quorate-guard"} {
			program, err := elf.NewFile(bytes.NewReader(files[b]))
			if err != nil {
				t.Fatalf("%s: %v", b, err)
			}
			interpreted := slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
			if program.Machine != machine || interpreted || headers[b].Mode != 0o755 || headers[b].Uid != 0 {
				t.Errorf("%s for %s: %s, interpreted: %t, %+v", b, architecture, program.Machine, interpreted, headers[b])
			}
		}
		if headers["tmp"].Mode != 0o1777 || headers["home/nonroot"].Uid != 65532 || !bytes.Contains(files["etc/passwd"], []byte("nonroot:x:65532:65532:")) {
			t.Errorf("%+v, %+v, %s", headers["tmp"], headers["home/nonroot"], files["etc/passwd"])
		}
		if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(files[authorities]) || bytes.Count(files[authorities], []byte("BEGIN CERTIFICATE")) < 100 {
			t.Errorf("%d certificate authorities", bytes.Count(files[authorities], []byte("BEGIN")))
		}
		if len(headers) != 14 {
			t.Errorf("%d files: %v", len(headers), headers)
		}
	}
}

// What is written is what was built: the layout, its tag, and the archive for this machine.
func TestTheLayoutAndTheArchiveAreTheImage(t *testing.T) {
	index, _ := built(t, small(t), both...)
	dir := t.TempDir()
	for range 2 { // the second replaces the first
		if err := write(index, []byte("{}"), dir, defaultTag); err != nil {
			t.Fatal(err)
		}
	}
	written, err := layout.ImageIndexFromPath(filepath.Join(dir, "image"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := written.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	if m := manifest.Manifests[0]; m.Digest != digestOf(t, index) || m.Annotations["org.opencontainers.image.ref.name"] != defaultTag || m.MediaType != types.OCIImageIndex {
		t.Errorf("%+v", m)
	}
	if err := validate.Index(written); err != nil {
		t.Errorf("the layout: %v", err)
	}
	tag, err := name.NewTag(repository + ":" + defaultTag)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := tarball.ImageFromPath(filepath.Join(dir, "image.tar"), &tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(archive); err != nil {
		t.Errorf("the archive: %v", err)
	}
	got, gotErr := archive.ConfigName()
	want, wantErr := imageOf(t, index, runtime.GOARCH).ConfigName()
	if got != want || gotErr != nil || wantErr != nil {
		t.Errorf("the archive has %s, %v, and the layout %s, %v", got, gotErr, want, wantErr)
	}
}

// A registry gets the image of all platforms, by its digest.
func TestTheImageIsPushed(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	index, _ := built(t, small(t), both...)
	to := strings.TrimPrefix(server.URL, "http://") + "/quorate/quorate:v1.2.3"
	if err := push(t.Context(), index, to); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(to)
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	if digestOf(t, got) != digestOf(t, index) {
		t.Errorf("%s, built %s", digestOf(t, got), digestOf(t, index))
	}
	for _, p := range both {
		imageOf(t, got, p.Architecture)
	}
}

// What would not say what runs is refused, and so is a checkout without a commit.
func TestAnImageSaysWhatItIs(t *testing.T) {
	if err := run(t.Context(), []string{"-tag", "latest"}); err == nil || !strings.Contains(err.Error(), "name a release") {
		t.Errorf("the tag latest: %v", err)
	}
	dir := small(t)
	if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := build(t.Context(), dir, both[:1]); err == nil {
		t.Error("without a commit it is built")
	}
}

// deploy/base runs what make image builds.
func TestTheBaseRunsWhatIsBuiltHere(t *testing.T) {
	text, err := os.ReadFile("../base/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := "image: " + repository + ":" + defaultTag + "\n"; !strings.Contains(string(text), want) {
		t.Errorf("deploy/base has no %s", want)
	}
}
