package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// user is nobody's: a number, so that Kubernetes can tell that it is not root.
	user = 65532
	// bin is where the binaries are; the pods of members name quorate-guard there.
	bin = "usr/local/bin"
)

// binaries returns what the image runs: the daemon, and the guard that runs in each member's pod.
func binaries() []string { return []string{"quorate", "quorate-guard"} }

// build builds the image of a checkout for some platforms, and the list of what is in it, as SPDX.
func build(ctx context.Context, root string, platforms []v1.Platform) (v1.ImageIndex, []byte, error) {
	dir, err := os.MkdirTemp("", "quorate-image-*")
	if err != nil {
		return nil, nil, fmt.Errorf("build the image: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var of facts
	var images []mutate.IndexAddendum
	for _, p := range platforms {
		to := filepath.Join(dir, p.OS+"-"+p.Architecture)
		if err := compile(ctx, root, to, p); err != nil {
			return nil, nil, err
		}
		if err := of.read(to); err != nil {
			return nil, nil, err
		}
		image, err := of.image(to, p)
		if err != nil {
			return nil, nil, fmt.Errorf("build the image for %s: %w", p, err)
		}
		images = append(images, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &p}})
	}
	index, isIndex := mutate.Annotations(mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), images...), of.labels()).(v1.ImageIndex)
	if !isIndex {
		return nil, nil, errors.New("build the image: its annotations make no index of it")
	}
	digest, err := index.Digest()
	if err != nil {
		return nil, nil, fmt.Errorf("digest of the image: %w", err)
	}
	sbom, err := of.sbom(digest)
	return index, sbom, err
}

// compile builds static binaries that name no path of this machine. What the environment could change
// of them is set; an empty GOFLAGS would be that of go env.
func compile(ctx context.Context, root, to string, p v1.Platform) error {
	args := []string{
		"build", "-trimpath", "-gcflags=all=-dwarf=false", "-tags=disable_grpc_modules,grpcnotrace",
		"-buildvcs=true", "-ldflags=-s -w", "-o", to + string(filepath.Separator),
	}
	for _, b := range binaries() {
		args = append(args, "./cmd/"+b)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Architecture, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s for %s in %s: %w\n%s", binaries(), p, root, err, text)
	}
	return nil
}

// facts are what Go has stamped into the binaries.
type facts struct {
	version, revision, goVersion string
	// at is the time of the commit.
	at time.Time
	// modules are those of all binaries of all platforms, by path.
	modules map[string]debug.Module
}

// read adds what the binaries in a directory say of themselves.
func (f *facts) read(dir string) error {
	for _, b := range binaries() {
		info, err := buildinfo.ReadFile(filepath.Join(dir, b))
		if err != nil {
			return fmt.Errorf("read what %s was built from: %w", b, err)
		}
		f.version, f.goVersion = info.Main.Version, info.GoVersion
		if f.modules == nil {
			f.modules = map[string]debug.Module{}
		}
		for _, m := range info.Deps {
			for m.Replace != nil {
				m = m.Replace
			}
			f.modules[m.Path] = *m
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				f.revision = s.Value
			case "vcs.time":
				if f.at, err = time.Parse(time.RFC3339, s.Value); err != nil {
					return fmt.Errorf("time of the commit that %s was built from: %w", b, err)
				}
			}
		}
	}
	if f.revision == "" || f.at.IsZero() {
		return errors.New("no commit is stamped into the binaries, which gives what is built its version and its times: build it in a clone; a worktree or an archive of the source has none")
	}
	return nil
}

// labels say what the image is, by the keys of the OCI image specification.
func (f *facts) labels() map[string]string {
	const of = "org.opencontainers.image."
	return map[string]string{
		of + "title":       "quorate",
		of + "description": "GitOps operator for etcd clusters on Kubernetes",
		of + "source":      "https://github.com/quorate/quorate",
		of + "licenses":    "Apache-2.0",
		of + "version":     f.version,
		of + "revision":    f.revision,
		of + "created":     f.at.Format(time.RFC3339),
	}
}

// image is that of one platform. Its first layer is the same for all.
func (f *facts) image(dir string, p v1.Platform) (v1.Image, error) {
	base, err := baseLayer()
	if err != nil {
		return nil, err
	}
	program, err := programLayer(dir)
	if err != nil {
		return nil, err
	}
	image, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), &v1.ConfigFile{
		OS: p.OS, Architecture: p.Architecture, Created: v1.Time{Time: f.at},
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User: fmt.Sprintf("%d:%d", user, user), WorkingDir: "/",
			Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			Entrypoint: []string{"/" + bin + "/quorate"}, Cmd: []string{"run"},
			Labels: f.labels(),
		},
	})
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: f.at}
	return mutate.Append(image,
		mutate.Addendum{Layer: base, History: v1.History{Created: created, Comment: "users, certificate authorities, /tmp"}},
		mutate.Addendum{Layer: program, History: v1.History{Created: created, Comment: "quorate " + f.version}},
	)
}
