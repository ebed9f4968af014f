package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// tool is a program that the sandbox needs and the Debian package it is in.
type tool struct{ program, pkg string }

func tools() []tool {
	return []tool{
		{"containerd", "containerd"},
		{"ctr", "containerd"},
		{"runc", "runc"},
		{"iptables", "iptables"},
		{"conntrack", "conntrack"},
		{"mkfs.xfs", "xfsprogs"},
		{"xfs_growfs", "xfsprogs"},
		{"ip", "iproute2"},
		{"sysctl", "procps"},
		{"nsenter", "util-linux"},
		{"losetup", "mount"},
		{"mount", "mount"},
	}
}

// elsewhere is what to do on a machine that cannot run the sandbox.
const elsewhere = "the tests can use any cluster that KUBECONFIG names instead, such as kind or minikube"

// preflight says in one line what this machine lacks.
func (s *sandbox) preflight(context.Context) error {
	for _, check := range []func() error{checkRoot, checkGo, checkPackages, checkKernel} {
		if err := check(); err != nil {
			return fmt.Errorf("this machine cannot run the sandbox: %w; %s", err, elsewhere)
		}
	}
	return nil
}

func checkRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("it needs root, for namespaces, mounts and containers")
	}
	return nil
}

func checkGo() error {
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("the go command is not in PATH")
	}
	return nil
}

// checkPackages is content with a missing program when apt-get can install it.
func checkPackages() error {
	missing := missingPackages()
	if _, err := exec.LookPath("apt-get"); err != nil && len(missing) > 0 {
		return fmt.Errorf("it lacks %s, and there is no apt-get to install them", strings.Join(missing, ", "))
	}
	return nil
}

func checkKernel() error {
	for _, name := range []string{"overlay", "xfs"} {
		if err := checkFilesystem(name); err != nil {
			return err
		}
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		return errors.New("there is no /dev/loop-control, so volumes cannot have a size")
	}
	all, err := hierarchies()
	if err == nil && len(all) == 0 {
		err = errors.New("no cgroups are mounted")
	}
	return err
}

func checkFilesystem(name string) error {
	// This fails where the kernel has it built in, or has no modules at all.
	_ = exec.Command("modprobe", name).Run()
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return fmt.Errorf("list filesystems: %w", err)
	}
	if !slices.Contains(strings.Fields(string(known)), name) {
		return fmt.Errorf("the kernel has no %s filesystem", name)
	}
	return nil
}

// missingPackages returns the Debian packages of the programs that are not
// there.
func missingPackages() []string {
	var missing []string
	for _, t := range tools() {
		if _, err := exec.LookPath(t.program); err != nil && !slices.Contains(missing, t.pkg) {
			missing = append(missing, t.pkg)
		}
	}
	if _, err := cniPlugins(); err != nil {
		missing = append(missing, "containernetworking-plugins")
	}
	return missing
}

// installPackages installs the Debian packages that are missing. A service
// that such a package starts is left alone: the sandbox has its own.
func (s *sandbox) installPackages(ctx context.Context) error {
	missing := missingPackages()
	if len(missing) == 0 {
		return nil
	}
	return s.progress.step("installing "+strings.Join(missing, ", "), func() error {
		if err := aptGet(ctx, "update"); err != nil {
			return err
		}
		return aptGet(ctx, append([]string{"install", "--yes", "--no-install-recommends"}, missing...)...)
	})
}

func aptGet(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, "apt-get", append([]string{"--quiet=2"}, args...)...)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
