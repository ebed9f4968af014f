package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// down removes every trace of the sandbox but the build cache. Each step looks
// at what is there rather than at what should be, so that it works after
// anything, and again; a step that goes wrong does not keep the others from
// being tried.
func (s *sandbox) down(ctx context.Context) error {
	return s.progress.step("removing the sandbox", func() error {
		return errors.Join(
			s.processesDown(),
			s.nodesDown(),
			s.mountsDown(ctx),
			s.networkDown(ctx),
			s.restoreSettings(),
			s.strayFilesDown(),
			s.dirDown(),
		)
	})
}

// processesDown ends every process that is recorded, and then those that an
// `up` that was killed itself has started but not recorded.
func (s *sandbox) processesDown() error {
	names, err := s.recorded()
	problems := []error{err}
	for _, name := range names {
		problems = append(problems, s.endProcess(name))
	}
	return errors.Join(append(problems, killNamed(s.dir, "etcd-"+storeVersion,
		"kube-apiserver", "kube-controller-manager", "kube-scheduler", "coredns", "provisioner",
		"kubelet", "kube-proxy", "containerd", "runc"))...)
}

// nodesDown ends the pods. It comes after the end of those who would make new
// ones.
func (s *sandbox) nodesDown() error {
	var problems []error
	for _, n := range s.nodes() {
		if err := n.kill(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", n.name, err))
		}
	}
	return errors.Join(append(problems, killCgroup(cgroupRoot))...)
}

// mountsDown unmounts volumes, which frees their loop devices, and frees those
// that a crash has left without a mount.
func (s *sandbox) mountsDown(ctx context.Context) error {
	problems := []error{unmountBelow(s.dir)}
	out, err := run(ctx, "losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE")
	if err != nil {
		return errors.Join(append(problems, err)...)
	}
	for line := range strings.Lines(out) {
		if device, file, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(strings.TrimSpace(file), s.dir+"/") {
			problems = append(problems, runAll(ctx, "losetup --detach "+device))
		}
	}
	return errors.Join(problems...)
}

// strayFilesDown removes what kubelet and containerd write outside the
// directories that they are given.
func (s *sandbox) strayFilesDown() error {
	var problems []error
	logs, err := filepath.Glob("/var/log/containers/*.log")
	problems = append(problems, err)
	for _, link := range logs {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, s.dir+"/") {
			problems = append(problems, os.Remove(link))
		}
	}
	results, err := cniResultsBelow(s.dir)
	problems = append(problems, err)
	for path := range results {
		problems = append(problems, os.Remove(path))
	}
	if _, err := net.Dial("unix", devicePlugins); errors.Is(err, syscall.ECONNREFUSED) {
		problems = append(problems, os.Remove(devicePlugins))
	}
	for _, dir := range strayDirs() {
		_ = os.Remove(dir) // whoever else uses it keeps it from being removed
	}
	return errors.Join(problems...)
}

// devicePlugins is a socket that every kubelet of a machine makes here.
const devicePlugins = "/var/lib/kubelet/device-plugins/kubelet.sock"

// strayDirs are the directories that kubelet and containerd make outside those
// that they are given, the deepest first.
func strayDirs() []string {
	return []string{
		"/var/log/containers",
		"/var/lib/kubelet/device-plugins", "/var/lib/kubelet",
		cniResults, "/var/lib/cni",
		"/run/containerd/s", "/run/containerd",
	}
}

// dirDown removes the state directory, once nothing is mounted in it: what was
// mounted would be emptied.
func (s *sandbox) dirDown() error {
	if _, err := os.Stat(s.path(marker)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	points, err := mountsBelow(s.dir)
	if err != nil {
		return err
	}
	if len(points) > 0 {
		return fmt.Errorf("remove %s: %s is still mounted", s.dir, points[0])
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("remove the state directory: %w", err)
	}
	return nil
}
