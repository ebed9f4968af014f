package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// minBytes is what the smallest disk has: XFS needs 16 MiB for itself alone.
const minBytes = 32 << 20

// disks are volumes under one directory:
//
//	NAME/image       the filesystem
//	NAME/mnt         where it is mounted
//	NAME/mnt/data    what the pod sees; a ballast file may lie beside it
type disks struct{ dir string }

func (d disks) image(name string) string { return filepath.Join(d.dir, name, "image") }
func (d disks) mount(name string) string { return filepath.Join(d.dir, name, "mnt") }
func (d disks) data(name string) string  { return filepath.Join(d.dir, name, "mnt", "data") }

// create makes and mounts a disk of this many bytes. A disk that is there
// already is left as it is.
func (d disks) create(ctx context.Context, name string, bytes int64) error {
	if err := os.MkdirAll(d.mount(name), 0o755); err != nil {
		return fmt.Errorf("make volume directory: %w", err)
	}
	if _, err := os.Stat(d.image(name)); os.IsNotExist(err) {
		if err := d.format(ctx, name, max(bytes, minBytes)); err != nil {
			return err
		}
	}
	if err := d.attach(ctx, name); err != nil {
		return err
	}
	if err := os.MkdirAll(d.data(name), 0o755); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	return nil
}

// format writes an empty filesystem beside its final name and renames it, so
// that a crash in between leaves no half-made image behind.
func (d disks) format(ctx context.Context, name string, bytes int64) error {
	draft := d.image(name) + ".new"
	file, err := os.Create(draft)
	if err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	defer file.Close()
	if err := file.Truncate(bytes); err != nil {
		return fmt.Errorf("size image: %w", err)
	}
	// Sizes below 300 MiB count as unsupported; for tests they are just right.
	if err := command(ctx, "mkfs.xfs", "-q", "-f", "--unsupported", draft); err != nil {
		return err
	}
	if err := os.Rename(draft, d.image(name)); err != nil {
		return fmt.Errorf("name image: %w", err)
	}
	return nil
}

// attach mounts the disk unless it is mounted.
func (d disks) attach(ctx context.Context, name string) error {
	mounted, err := isMounted(d.mount(name))
	if err != nil || mounted {
		return err
	}
	return command(ctx, "mount", "-o", "loop,nouuid", d.image(name), d.mount(name))
}

// mountAll mounts every disk again after the machine was restarted.
func (d disks) mountAll(ctx context.Context) error {
	images, err := filepath.Glob(d.image("*"))
	if err != nil {
		return fmt.Errorf("list volumes: %w", err)
	}
	for _, image := range images {
		if err := d.attach(ctx, filepath.Base(filepath.Dir(image))); err != nil {
			return err
		}
	}
	return nil
}

// grow makes the disk at least this many bytes. It is safe to run again after
// any of its steps.
func (d disks) grow(ctx context.Context, name string, bytes int64) error {
	info, err := os.Stat(d.image(name))
	if err != nil {
		return fmt.Errorf("look at image: %w", err)
	}
	if info.Size() < bytes {
		if err := os.Truncate(d.image(name), bytes); err != nil {
			return fmt.Errorf("grow image: %w", err)
		}
	}
	loop, err := loopDevice(ctx, d.image(name))
	if err != nil {
		return err
	}
	if err := command(ctx, "losetup", "--set-capacity", loop); err != nil {
		return err
	}
	return command(ctx, "xfs_growfs", d.mount(name))
}

// remove unmounts the disk, which frees its loop device, and deletes it.
func (d disks) remove(ctx context.Context, name string) error {
	mounted, err := isMounted(d.mount(name))
	if err != nil {
		return err
	}
	if mounted {
		if err := command(ctx, "umount", d.mount(name)); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(filepath.Join(d.dir, name)); err != nil {
		return fmt.Errorf("remove volume: %w", err)
	}
	return nil
}

func loopDevice(ctx context.Context, image string) (string, error) {
	out, err := exec.CommandContext(ctx, "losetup", "--associated", image, "--noheadings", "--output", "NAME").Output()
	if err != nil {
		return "", fmt.Errorf("find loop device of %s: %w", image, err)
	}
	name := strings.TrimSpace(string(out))
	if name == "" {
		return "", fmt.Errorf("find loop device of %s: it has none", image)
	}
	return name, nil
}

// isMounted reports whether something is mounted at exactly this path.
func isMounted(path string) (bool, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, fmt.Errorf("list mounts: %w", err)
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == path {
			return true, nil
		}
	}
	return false, nil
}

func command(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
