package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/test/checkout"
)

// Image is the name of quorate's image where the harness builds it.
const Image = "ghcr.io/quorate/quorate:dev"

// Binary is the path of a static quorate, with quorate-guard next to it: the one
// that QUORATE names, else one built from this checkout into bin/. Go's cache
// makes the second build quick.
func Binary(ctx context.Context) (string, error) {
	if path := os.Getenv("QUORATE"); path != "" {
		return filepath.Abs(path)
	}
	root, err := checkout.Root()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(root, "bin") + string(filepath.Separator)
	if err := GoBuild(ctx, root, bin, "./cmd/quorate", "./cmd/quorate-guard"); err != nil {
		return "", err
	}
	return bin + "quorate", nil
}

// GoBuild builds static programs from packages of the module in dir: one as the file
// to, or several into the directory to, which ends with a separator.
func GoBuild(ctx context.Context, dir, to string, packages ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-ldflags=-s -w", "-o", to}, packages...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if _, err := output(cmd); err != nil {
		return fmt.Errorf("build %s in %s: %w", strings.Join(packages, " "), dir, err)
	}
	return nil
}

// ProvideImage returns the name of quorate's image as the nodes know it. In the
// sandbox it builds the image and loads it; elsewhere QUORATE_IMAGE must name
// one that the nodes have or can pull.
func (c *Cluster) ProvideImage(ctx context.Context) (string, error) {
	if image := os.Getenv("QUORATE_IMAGE"); image != "" {
		return image, nil
	}
	if c.Sandbox == nil {
		return "", errors.New("set QUORATE_IMAGE to an image of quorate that the cluster's nodes have or can pull: make image && kind load image-archive bin/image.tar (or minikube image load bin/image.tar) gives them " + Image)
	}
	binary, err := Binary(ctx)
	if err != nil {
		return "", err
	}
	guard := filepath.Join(filepath.Dir(binary), "quorate-guard")
	if err := c.Sandbox.LoadImage(ctx, Image, "65532:65532", binary, guard); err != nil {
		return "", fmt.Errorf("load %s: %w", Image, err)
	}
	return Image, nil
}
