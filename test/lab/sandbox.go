package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/test/checkout"
)

// Sandbox is the sandbox of test/sandbox, by its binary.
type Sandbox struct {
	path string
}

// SandboxStatus is what the sandbox reports about itself.
type SandboxStatus struct {
	// Up says that every process of the sandbox runs.
	Up bool `json:"up"`
	// Kubeconfig is the path of the administrator's kubeconfig, Dir where state
	// and logs are.
	Kubeconfig string `json:"kubeconfig"`
	Dir        string `json:"dir"`
}

// FindSandbox returns the sandbox that QUORATE_SANDBOX names, or the one that make has built in this checkout; nil
// when there is none.
func FindSandbox() *Sandbox {
	path := os.Getenv("QUORATE_SANDBOX")
	if path == "" {
		var err error
		if path, err = checkout.Sandbox(); err != nil {
			return nil
		}
	}
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return &Sandbox{path}
}

// WithKubernetes returns the sandbox when the programs of Kubernetes are built; else the error names the target that
// builds them.
func WithKubernetes() (*Sandbox, error) {
	for _, name := range []string{"kube-apiserver", "kubectl", "etcd-v3.6.16"} {
		if _, err := checkout.Program(name); err != nil {
			return nil, fmt.Errorf("needs %s, which is not built: `make test` builds it and runs this", name)
		}
	}
	return FindSandbox(), nil
}

// BuildSandbox builds the sandbox's program into dir: enough for callers that need the
// binaries that it builds, and no Kubernetes.
func BuildSandbox(ctx context.Context, dir string) (*Sandbox, error) {
	root, err := checkout.Root()
	if err != nil {
		return nil, err
	}
	s := &Sandbox{filepath.Join(dir, "sandbox")}
	return s, GoBuild(ctx, filepath.Join(root, "test", "sandbox"), s.path, ".")
}

// Up brings the sandbox up, with its own progress on out, and what else is needed
// of it: programs as Build names them, or --all. Its nodes have the images of all
// releases of etcd that were built before. Where the machine cannot run it, the error
// is the sandbox's one line that tells what is missing.
func (s *Sandbox) Up(ctx context.Context, out io.Writer, more ...string) error {
	if _, err := s.run(ctx, "preflight"); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, s.path, append([]string{"up"}, more...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("sandbox up: %w", err)
	}
	return nil
}

// Status asks what runs.
func (s *Sandbox) Status(ctx context.Context) (SandboxStatus, error) {
	text, err := s.run(ctx, "status", "--output=json")
	if err != nil {
		return SandboxStatus{}, err
	}
	var status SandboxStatus
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		return SandboxStatus{}, fmt.Errorf("sandbox status: %w", err)
	}
	return status, nil
}

// Build is the path of any program of the sandbox, such as versitygw or etcd-v3.5.35,
// which is built first if it was not yet.
func (s *Sandbox) Build(ctx context.Context, name string) (string, error) {
	return s.run(ctx, "exec-path", "--build", name)
}

// LoadImage gives every node an image of static binaries, each at
// /usr/local/bin; the first is what runs when a pod gives no command.
func (s *Sandbox) LoadImage(ctx context.Context, name, user string, binaries ...string) error {
	_, err := s.run(ctx, "image", "load", name+"="+strings.Join(binaries, ","),
		"--entrypoint=/usr/local/bin/"+filepath.Base(binaries[0]), "--user="+user)
	return err
}

// CutNode takes a node off the network; HealNode undoes it.
func (s *Sandbox) CutNode(ctx context.Context, node string) error {
	_, err := s.run(ctx, "cut", "node", node)
	return err
}

// HealNode undoes CutNode.
func (s *Sandbox) HealNode(ctx context.Context, node string) error {
	_, err := s.run(ctx, "heal", "node", node)
	return err
}

// CutPod takes a pod off the network until HealPod, or until it is recreated.
func (s *Sandbox) CutPod(ctx context.Context, namespace, pod string) error {
	_, err := s.run(ctx, "cut", "pod", namespace+"/"+pod)
	return err
}

// HealPod undoes CutPod.
func (s *Sandbox) HealPod(ctx context.Context, namespace, pod string) error {
	_, err := s.run(ctx, "heal", "pod", namespace+"/"+pod)
	return err
}

// StopNode is a power cut: processes end, disks stay.
func (s *Sandbox) StopNode(ctx context.Context, node string) error {
	_, err := s.run(ctx, "node", "stop", node)
	return err
}

// StartNode undoes StopNode.
func (s *Sandbox) StartNode(ctx context.Context, node string) error {
	_, err := s.run(ctx, "node", "start", node)
	return err
}

// FillVolume leaves no space on a claim's volume; DrainVolume undoes it.
func (s *Sandbox) FillVolume(ctx context.Context, namespace, claim string) error {
	_, err := s.run(ctx, "fill", namespace+"/"+claim)
	return err
}

// DrainVolume undoes FillVolume.
func (s *Sandbox) DrainVolume(ctx context.Context, namespace, claim string) error {
	_, err := s.run(ctx, "drain", namespace+"/"+claim)
	return err
}

// WipeVolume removes etcd's data from a claim's volume, and leaves what else is
// on it.
func (c *Cluster) WipeVolume(ctx context.Context, namespace, claim string) error {
	path, err := c.VolumePath(ctx, namespace, claim)
	if err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(path, guard.DataDir))
}

// VolumePath is where a claim's volume is on this machine. Only the sandbox's are
// here at all: directories, which a test may damage.
func (c *Cluster) VolumePath(ctx context.Context, namespace, claim string) (string, error) {
	if c.Sandbox == nil {
		return "", errors.New("reach a volume: only the sandbox's can be reached")
	}
	pvc, err := c.Client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, claim, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reach %s: %w", claim, err)
	}
	volume, err := c.Client.CoreV1().PersistentVolumes().Get(ctx, pvc.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reach %s: %w", claim, err)
	}
	if volume.Spec.Local == nil {
		return "", fmt.Errorf("reach %s: its volume is not a local one", claim)
	}
	return volume.Spec.Local.Path, nil
}

// run is one command of the sandbox; its error is what the sandbox says.
func (s *Sandbox) run(ctx context.Context, args ...string) (string, error) {
	return output(exec.CommandContext(ctx, s.path, args...))
}

// output runs a command and returns its standard output without the line's end.
// The error carries what the command said on standard error.
func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err == nil {
		return strings.TrimSpace(stdout.String()), nil
	}
	said := strings.TrimSpace(stderr.String())
	if said == "" {
		return "", fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", errors.New(said)
	}
	return "", fmt.Errorf("%w: %s", err, said)
}
