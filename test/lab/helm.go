package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/quorate/quorate/test/checkout"
)

// HelmPath is the path of Helm: QUORATE_HELM, or else a tool of the module test/deploy, which is built
// first if it was not yet.
func HelmPath(ctx context.Context) (string, error) {
	if path := os.Getenv("QUORATE_HELM"); path != "" {
		return path, nil
	}
	root, err := checkout.Root()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", "-n", "helm")
	cmd.Dir, cmd.Env = filepath.Join(root, "test", "deploy"), append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	path, err := output(cmd)
	if err != nil {
		return "", fmt.Errorf("build helm: %w", err)
	}
	return path, nil
}
