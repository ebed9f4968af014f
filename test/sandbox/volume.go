package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ballast lies beside the directory that the pod sees, so that the pod's
// volume is full without holding a file that is not the pod's.
const ballast = "ballast"

// fill takes all free space of a claim's volume but so many bytes.
func (s *sandbox) fill(ctx context.Context, claim string, leave int64) error {
	disk, err := s.disk(ctx, claim)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(disk, ballast), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("fill %s: %w", claim, err)
	}
	defer file.Close()
	if err := takeSpace(file, disk, leave); err != nil {
		return fmt.Errorf("fill %s: %w", claim, err)
	}
	return nil
}

// takeSpace grows the file by ever smaller pieces, because the last blocks of
// a filesystem are not to be had in one.
func takeSpace(file *os.File, disk string, leave int64) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	for piece := int64(1 << 30); piece >= 4096; {
		free, err := freeBytes(disk)
		if err != nil {
			return err
		}
		if free-piece < leave {
			piece /= 2
			continue
		}
		switch err := syscall.Fallocate(int(file.Fd()), 0, size, piece); {
		case err == nil:
			size += piece
		case errors.Is(err, syscall.ENOSPC):
			piece /= 2
		default:
			return err
		}
	}
	return nil
}

func freeBytes(path string) (int64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(path, &stat); err != nil {
		return 0, err
	}
	return int64(stat.Bavail) * stat.Bsize, nil
}

// drain removes what fill has put on a volume.
func (s *sandbox) drain(ctx context.Context, claim string) error {
	disk, err := s.disk(ctx, claim)
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(disk, ballast)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("drain %s: %w", claim, err)
	}
	return nil
}

// disk returns where the volume of a claim, NAMESPACE/NAME, is mounted.
func (s *sandbox) disk(ctx context.Context, claim string) (string, error) {
	namespace, name, err := splitName(claim)
	if err != nil {
		return "", err
	}
	var bound struct{ Spec struct{ VolumeName string } }
	if err := s.get(ctx, "/api/v1/namespaces/"+namespace+"/persistentvolumeclaims/"+name, &bound); err != nil {
		return "", err
	}
	if bound.Spec.VolumeName == "" {
		return "", fmt.Errorf("claim %s has no volume yet; it gets one with its first pod", claim)
	}
	var volume struct {
		Spec struct{ Local struct{ Path string } }
	}
	if err := s.get(ctx, "/api/v1/persistentvolumes/"+bound.Spec.VolumeName, &volume); err != nil {
		return "", err
	}
	if !strings.HasPrefix(volume.Spec.Local.Path, s.path("volumes")+"/") {
		return "", fmt.Errorf("the volume of claim %s is not one of the sandbox's disks", claim)
	}
	return filepath.Dir(volume.Spec.Local.Path), nil
}

// splitName splits NAMESPACE/NAME.
func splitName(full string) (namespace, name string, err error) {
	namespace, name, found := strings.Cut(full, "/")
	if !found || namespace == "" || name == "" {
		return "", "", fmt.Errorf("%q: want NAMESPACE/NAME", full)
	}
	return namespace, name, nil
}
