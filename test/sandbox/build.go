package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// artifact is a binary that is built from a directory of this program's source.
type artifact struct {
	name     string // of the binary
	dir      string // below the source, where it is built
	pkg      string // the package, "." unless it belongs to another module
	ldflags  string
	links    []string // further names that it is called by
	expected string   // how long a first build takes
	// apart is what nothing in the sandbox runs; it is built when it is asked for.
	apart bool
}

// etcdVersions are the releases that pods can run, each as
// quay.io/coreos/etcd:VERSION. Each has a module below etcd/.
func etcdVersions() []string {
	return []string{"v3.4.34", "v3.5.21", "v3.5.35", "v3.6.12", "v3.6.16", "v3.7.3"}
}

// oldEtcdVersions are releases that no pod runs: nothing but their command line
// is compared with what quorate knows of it.
func oldEtcdVersions() []string {
	return []string{"v3.3.27"}
}

// storeVersion is the etcd that the API server itself keeps its data in.
const storeVersion = "v3.6.16"

// kubernetesVersion is what the binaries say they are; clients parse it.
const kubernetesVersion = "v1.36.3"

func artifacts() []artifact {
	all := []artifact{{
		name: "kubernetes", dir: "kubernetes", pkg: ".", expected: "4–6 min on two cores",
		ldflags: "-X k8s.io/component-base/version.gitVersion=" + kubernetesVersion,
		links:   []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl"},
	}}
	for _, version := range append(oldEtcdVersions(), etcdVersions()...) {
		all = append(all, artifact{
			name: "etcd", dir: "etcd/" + version, pkg: etcdPackage(version), expected: "15–60 s",
			links: []string{"etcd-" + version},
		})
	}
	return append(all,
		artifact{name: "coredns", dir: "coredns", pkg: ".", expected: "about 1 min"},
		artifact{name: "provisioner", dir: "provisioner", pkg: ".", expected: "about 20 s"},
		artifact{name: "versitygw", dir: "s3", pkg: ".", expected: "about 1 min"},
		artifact{name: "gitea", dir: "gitea", pkg: ".", expected: "5–10 min on two cores", apart: true},
		artifact{name: "pause", dir: "pause", pkg: ".", expected: "1 s"},
		artifact{name: "probe", dir: "probe", pkg: ".", expected: "5 s"},
	)
}

// etcdPackage is where a release has its main package.
func etcdPackage(version string) string {
	switch {
	case strings.HasPrefix(version, "v3.3."):
		return "github.com/coreos/etcd"
	case strings.HasPrefix(version, "v3.4."):
		return "go.etcd.io/etcd"
	}
	return "go.etcd.io/etcd/server/v3"
}

// buildAll builds every binary and image of the sandbox that is not in the cache.
func (s *sandbox) buildAll(ctx context.Context) error {
	for _, a := range artifacts() {
		if a.apart {
			continue
		}
		if err := s.build(ctx, a); err != nil {
			return err
		}
	}
	for _, image := range s.images() {
		if _, err := s.imageArchive(image); err != nil {
			return err
		}
	}
	return nil
}

// build builds one binary into a directory of its own and names that directory
// last, so that what is in the cache is always whole.
func (s *sandbox) build(ctx context.Context, a artifact) error {
	dir, err := s.artifactDir(a)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(s.cache, 0o755); err != nil {
		return fmt.Errorf("build %s: %w", a.name, err)
	}
	draft, err := os.MkdirTemp(s.cache, "building-*")
	if err != nil {
		return fmt.Errorf("build %s: %w", a.name, err)
	}
	defer func() { _ = os.RemoveAll(draft) }()
	what := fmt.Sprintf("building %s (%s when nothing is cached)", a.dir, a.expected)
	return s.progress.step(what, func() error {
		if err := s.compile(ctx, a, filepath.Join(draft, a.name)); err != nil {
			return err
		}
		for _, link := range a.links {
			if err := os.Symlink(a.name, filepath.Join(draft, link)); err != nil {
				return fmt.Errorf("build %s: %w", a.name, err)
			}
		}
		if err := errors.Join(os.Chmod(draft, 0o755), os.Rename(draft, dir)); err != nil {
			if _, there := os.Stat(dir); there == nil {
				return nil // another process has built the same meanwhile
			}
			return fmt.Errorf("build %s: %w", a.name, err)
		}
		return nil
	})
}

// compile makes a static binary, since images have nothing but it.
func (s *sandbox) compile(ctx context.Context, a artifact, output string) error {
	command := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags", strings.TrimSpace("-s -w "+a.ldflags), "-o", output, a.pkg)
	command.Dir = filepath.Join(s.source, a.dir)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s in %s: %w\n%s", a.name, command.Dir, err, out)
	}
	return nil
}

// artifactDir is the place in the cache for what the source is now: its name
// holds a hash of the module files, the sources and the Go release.
func (s *sandbox) artifactDir(a artifact) (string, error) {
	dir := filepath.Join(s.source, a.dir)
	var files []string
	for _, pattern := range []string{"*.go", "go.mod", "go.sum"} {
		matches, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return "", fmt.Errorf("list source of %s: %w", a.name, err)
		}
		files = append(files, matches...)
	}
	if len(files) == 0 {
		return "", fmt.Errorf("the source of %s is not at %s; build this program again from the checkout", a.name, dir)
	}
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.Version(), a.pkg, a.ldflags, a.links)
	for _, path := range files {
		if err := addFile(hash, path); err != nil {
			return "", fmt.Errorf("hash source of %s: %w", a.name, err)
		}
	}
	name := strings.ReplaceAll(a.dir, "/", "-") + "-" + hex.EncodeToString(hash.Sum(nil))[:12]
	return filepath.Join(s.cache, name), nil
}

func addFile(hash io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	fmt.Fprintln(hash, filepath.Base(path))
	_, err = io.Copy(hash, file)
	return err
}

// execNames are the names that exec-path knows.
func execNames() []string {
	var names []string
	for _, a := range artifacts() {
		if len(a.links) == 0 {
			names = append(names, a.name)
		}
		names = append(names, a.links...)
	}
	return names
}

// execPath returns the path of a built binary.
func (s *sandbox) execPath(name string) (string, error) {
	a, err := artifactNamed(name)
	if err != nil {
		return "", err
	}
	dir, err := s.artifactDir(a)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not built; run `sandbox build` first", name)
	}
	return path, nil
}

// buildNamed builds the one binary of that name when it is not in the cache.
func (s *sandbox) buildNamed(ctx context.Context, name string) error {
	a, err := artifactNamed(name)
	if err != nil {
		return err
	}
	return s.build(ctx, a)
}

// artifactNamed finds what a name is a binary of.
func artifactNamed(name string) (artifact, error) {
	for _, a := range artifacts() {
		if slices.Contains(a.links, name) || a.name == name && len(a.links) == 0 {
			return a, nil
		}
	}
	return artifact{}, fmt.Errorf("no binary is named %s; there are %s", name, strings.Join(execNames(), ", "))
}
