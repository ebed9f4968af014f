// Command image builds quorate's container image, without Docker: an index for linux/amd64 and
// linux/arm64, as an OCI layout with a list of what is in it, and on request in a registry.
//
// Two builds of one commit have one digest, wherever the checkout is: the binaries name no path, and
// all times are the commit's. It is a module of its own, so that the product's go.mod does not know
// registries.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// repository is where the image of a release is.
	repository = "ghcr.io/quorate/quorate"
	// defaultTag is that of deploy/base: what was built here, and no release.
	defaultTag = "dev"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run builds the image that the arguments ask for.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	root := flags.String("root", filepath.Join("..", ".."), "the checkout")
	out := flags.String("o", filepath.Join("..", "..", "bin"), "directory for the layout image, the archive image.tar of this machine's platform, and image.spdx.json")
	tag := flags.String("tag", defaultTag, "tag of the image")
	to := flags.String("push", "", "repository to push the image to, such as "+repository+"; credentials are those of docker login")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *tag == "latest" {
		return fmt.Errorf("the tag latest does not say what runs: name a release or %s", defaultTag)
	}
	index, sbom, err := build(ctx, *root, []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}})
	if err != nil {
		return err
	}
	if err := write(index, sbom, *out, *tag); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("digest of the image: %w", err)
	}
	fmt.Printf("%s:%s@%s in %s\n", repository, *tag, digest, *out)
	if *to == "" {
		return nil
	}
	return push(ctx, index, *to+":"+*tag)
}

// write writes the layout, the list of its contents, and an archive for this machine's platform, which
// docker load, kind load image-archive, minikube image load and ctr images import take.
func write(index v1.ImageIndex, sbom []byte, dir, tag string) error {
	at := filepath.Join(dir, "image")
	if err := os.RemoveAll(at); err != nil {
		return fmt.Errorf("replace the layout: %w", err)
	}
	path, err := layout.Write(at, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err == nil {
		err = path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag}))
	}
	if err != nil {
		return fmt.Errorf("write the layout %s: %w", at, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "image.spdx.json"), sbom, 0o644); err != nil {
		return fmt.Errorf("write what the image contains: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("read the image: %w", err)
	}
	for _, m := range manifest.Manifests {
		if m.Platform.Architecture != runtime.GOARCH {
			continue
		}
		ref, err := name.NewTag(repository + ":" + tag)
		if err != nil {
			return fmt.Errorf("tag %q: %w", tag, err)
		}
		image, err := index.Image(m.Digest)
		if err == nil {
			err = tarball.WriteToFile(filepath.Join(dir, "image.tar"), ref, image)
		}
		if err != nil {
			return fmt.Errorf("write the archive: %w", err)
		}
	}
	return nil
}

// push sends the image of all platforms to a registry.
func push(ctx context.Context, index v1.ImageIndex, to string) error {
	ref, err := name.ParseReference(to, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("push to %s: %w; name a registry, a repository and a tag", strings.TrimSpace(to), err)
	}
	if err := remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push to %s: %w", ref, err)
	}
	return nil
}
