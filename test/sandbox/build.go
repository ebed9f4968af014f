package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// artifact is a binary that is built from a directory of this program's source.
type artifact struct {
	name    string // of the binary
	dir     string // below the source, where it is built
	pkg     string // the package, "." unless it belongs to another module
	ldflags string
	links   []string // further names that it is called by
	// packages is how many a first build compiles, roughly, after those above it.
	packages int
	// core is what every sandbox runs; the rest is built when it is asked for.
	core bool
	// after is the name of what compiles most packages of this one, too.
	after string
	// apart is what nothing in the sandbox runs, and takes long.
	apart bool
	// script is set for a program that npm installs and node runs: its file below node_modules.
	script string
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

// kubernetesVersions are the releases that the sandbox can be of: the newest, which it
// is unless another is asked for, and the oldest that quorate supports. Each has a
// module below kubernetes/.
func kubernetesVersions() []string { return []string{"v1.36.3", "v1.30.14"} }

// kubernetesVersion finds a release by its version, or its minor; "" is the newest.
func kubernetesVersion(name string) (string, error) {
	for _, version := range kubernetesVersions() {
		if name == "" || strings.HasPrefix(version+".", "v"+strings.TrimPrefix(name, "v")+".") {
			return version, nil
		}
	}
	return "", fmt.Errorf("QUORATE_KUBERNETES=%s: want one of %s", name, strings.Join(kubernetesVersions(), ", "))
}

// artifacts are all that can be built, what takes longest first. The modules of the
// newest kubernetes and of those after it have the same versions (align.sh), so that
// Go's cache has what they share.
func (s *sandbox) artifacts() []artifact {
	all := []artifact{
		{
			name: "kubernetes", dir: "kubernetes/" + s.kubernetes, pkg: ".", packages: 1900, core: true,
			// Clients parse what the binaries say they are.
			ldflags: "-X k8s.io/component-base/version.gitVersion=" + s.kubernetes,
			links:   []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet"},
		},
		{name: "gitea", dir: "gitea", pkg: ".", packages: 1500, apart: true},
		{name: "cert-manager", dir: "certmanager", pkg: ".", packages: 900, apart: true},
		{name: "versitygw", dir: "s3", pkg: ".", packages: 300},
		{name: "fake-gcs-server", dir: "gcs", pkg: "github.com/fsouza/fake-gcs-server", packages: 300},
		{name: "azurite", dir: "azurite", script: "azurite/dist/src/blob/main.js"},
	}
	for _, version := range slices.Backward(append(oldEtcdVersions(), etcdVersions()...)) {
		all = append(all, artifact{
			name: "etcd", dir: "etcd/" + version, pkg: etcdPackage(version), packages: 250, core: version == storeVersion,
			links: []string{"etcd-" + version},
		})
	}
	return append(all,
		artifact{
			name: "kubectl", dir: "kubernetes/" + s.kubernetes + "/kubectl", pkg: ".", packages: 200, after: "kubernetes",
		},
		artifact{
			name: "kustomize", dir: "kustomize", pkg: "sigs.k8s.io/kustomize/kustomize/v5", packages: 100, after: "kubernetes",
		},
		artifact{name: "coredns", dir: "coredns", pkg: ".", packages: 80, core: true, after: "kubernetes"},
		artifact{name: "provisioner", dir: "provisioner", pkg: ".", packages: 10, core: true, after: "kubernetes"},
		artifact{name: "pause", dir: "pause", pkg: ".", packages: 1, core: true},
		artifact{name: "probe", dir: "probe", pkg: ".", packages: 1, core: true},
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

// core is what every sandbox needs.
func (s *sandbox) core() []artifact {
	return slices.DeleteFunc(s.artifacts(), func(a artifact) bool { return !a.core })
}

// allButApart is what all tests on a sandbox need.
func (s *sandbox) allButApart() []artifact {
	return slices.DeleteFunc(s.artifacts(), func(a artifact) bool { return a.apart })
}

// named are the artifacts of these binaries.
func (s *sandbox) named(names []string) ([]artifact, error) {
	var all []artifact
	for _, name := range names {
		a, err := s.artifactNamed(name)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// build builds what of these is not in the cache.
func (s *sandbox) build(ctx context.Context, wanted []artifact) error {
	chains, err := s.chains(wanted)
	if err != nil {
		return err
	}
	if len(chains) == 0 {
		return nil
	}
	return s.progress.build(ctx, chains)
}

// chainsBeside are a build that is not of the sandbox, and beside it all that `up`
// builds with these names, unless there are none. Kubernetes follows the former, for
// what they share.
func (s *sandbox) chainsBeside(one link, names []string) ([]chain, error) {
	if len(names) == 0 {
		return []chain{{one}}, nil
	}
	wanted, err := s.named(names)
	if err != nil {
		return nil, err
	}
	chains, err := s.chains(append(wanted, s.core()...))
	if err != nil || len(chains) == 0 {
		return []chain{{one}}, err
	}
	chains[0] = append(chain{one}, chains[0]...)
	return chains, nil
}

// chains are the builds that are necessary, in the order of artifacts.
func (s *sandbox) chains(wanted []artifact) ([]chain, error) {
	var chains []chain
	at := map[string]int{} // the chain of a name
	for _, a := range s.artifacts() {
		if !slices.ContainsFunc(wanted, func(w artifact) bool { return w.dir == a.dir }) {
			continue
		}
		dir, err := s.artifactDir(a)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(dir); err == nil {
			continue
		}
		i, follows := at[a.after]
		if !follows {
			i, chains = len(chains), append(chains, nil)
		}
		at[a.name] = i
		chains[i] = append(chains[i], s.toBuild(a, dir))
	}
	return chains, nil
}

// toBuild builds one binary into a directory of its own and names that directory
// last, so that what is in the cache is always whole.
func (s *sandbox) toBuild(a artifact, dir string) link {
	c := &compilation{name: a.dir, dir: filepath.Join(s.source, a.dir), packages: []string{a.pkg}, expected: a.packages}
	fill := func(ctx context.Context, draft string) error {
		ldflags := strings.TrimSpace("-s -w " + a.ldflags)
		c.flags = []string{"-buildvcs=false", "-ldflags", ldflags, "-o", filepath.Join(draft, a.name)}
		return c.run(ctx)
	}
	if a.script != "" {
		fill = func(ctx context.Context, draft string) error { return npmInstall(ctx, c.dir, draft, a) }
	}
	return link{c, func(ctx context.Context) error {
		if err := os.MkdirAll(s.cache, 0o755); err != nil {
			return fmt.Errorf("build %s: %w", a.name, err)
		}
		draft, err := os.MkdirTemp(s.cache, "building-*")
		if err != nil {
			return fmt.Errorf("build %s: %w", a.name, err)
		}
		defer func() { _ = os.RemoveAll(draft) }()
		if err := fill(ctx, draft); err != nil {
			return err
		}
		for _, name := range a.links {
			if err := os.Symlink(a.name, filepath.Join(draft, name)); err != nil {
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
	}}
}

// npmInstall installs what the lock file in dir names into the directory to, with a link to the script that is named as
// the artifact.
func npmInstall(ctx context.Context, dir, to string, a artifact) error {
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("install %s: %w", a.name, err)
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o600); err != nil {
			return fmt.Errorf("install %s: %w", a.name, err)
		}
	}
	_, err := run(ctx, "npm", "ci", "--prefix="+to, "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund")
	if err != nil {
		return fmt.Errorf("install %s: %w", a.name, err)
	}
	return os.Symlink(filepath.Join("node_modules", a.script), filepath.Join(to, a.name))
}

// artifactDir is the place in the cache for what the source is now: its name
// holds a hash of the module files, the sources and the Go release.
func (s *sandbox) artifactDir(a artifact) (string, error) {
	if s.source == "" {
		return "", fmt.Errorf("find the source of %s: run this from inside of a checkout of quorate", a.name)
	}
	dir := filepath.Join(s.source, a.dir)
	patterns := []string{"*.go", "go.mod", "go.sum", "package*.json"}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil { // a package of the module above
		patterns = append(patterns, "../go.mod", "../go.sum")
	}
	var files []string
	for _, pattern := range patterns {
		matches, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return "", fmt.Errorf("list source of %s: %w", a.name, err)
		}
		files = append(files, matches...)
	}
	if len(files) == 0 {
		return "", fmt.Errorf("the source of %s is not at %s", a.name, dir)
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
func (s *sandbox) execNames() []string {
	var names []string
	for _, a := range s.artifacts() {
		if len(a.links) == 0 {
			names = append(names, a.name)
		}
		names = append(names, a.links...)
	}
	return names
}

// execPath returns the path of a built binary.
func (s *sandbox) execPath(name string) (string, error) {
	a, err := s.artifactNamed(name)
	if err != nil {
		return "", err
	}
	dir, err := s.artifactDir(a)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not built; run `sandbox build %s` first", name, name)
	}
	return path, nil
}

// artifactNamed finds what a name is a binary of.
func (s *sandbox) artifactNamed(name string) (artifact, error) {
	for _, a := range s.artifacts() {
		if slices.Contains(a.links, name) || a.name == name && len(a.links) == 0 {
			return a, nil
		}
	}
	return artifact{}, fmt.Errorf("no binary is named %s; there are %s", name, strings.Join(s.execNames(), ", "))
}
