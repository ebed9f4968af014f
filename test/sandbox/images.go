package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"
)

// image is a container image that holds static binaries and next to nothing
// else.
type image struct {
	name       string
	binaries   []string // on this machine; at /usr/local/bin in the image
	entrypoint string
	user       string
}

const (
	pauseImage = "registry.k8s.io/pause:3.10"
	probeImage = "quorate.dev/sandbox/probe:dev"
)

// images are the images that every node has from the start: what the sandbox itself
// needs, and the releases of etcd that are built.
func (s *sandbox) images() []image {
	all := []image{
		{name: pauseImage, binaries: []string{"pause"}, entrypoint: "/usr/local/bin/pause"},
		{name: probeImage, binaries: []string{"probe"}, entrypoint: "/usr/local/bin/probe"},
	}
	for _, version := range etcdVersions() {
		if _, err := s.execPath("etcd-" + version); err == nil {
			all = append(all, image{name: "quay.io/coreos/etcd:" + version, binaries: []string{"etcd-" + version}})
		}
	}
	return all
}

// imageArchive writes the archive of one of the sandbox's own images, which
// are made of built binaries, beside the binary in the cache.
func (s *sandbox) imageArchive(i image) (string, error) {
	binary, err := s.execPath(i.binaries[0])
	if err != nil {
		return "", err
	}
	if i.binaries[0], err = filepath.EvalSymlinks(binary); err != nil {
		return "", fmt.Errorf("image %s: %w", i.name, err)
	}
	path := filepath.Join(filepath.Dir(binary), "image.tar")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, i.write(path)
}

// loadImage makes an image of binaries on this machine and gives it to every
// node; a node that is switched off gets it when it is started.
func (s *sandbox) loadImage(ctx context.Context, i image) error {
	path := s.path("images", digest(i.name)+".tar")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("load image %s: %w", i.name, err)
	}
	if err := i.write(path); err != nil {
		return err
	}
	return s.progress.step("loading "+i.name, func() error {
		var nodes errgroup.Group
		for _, n := range s.nodes() {
			if s.running(n.containerd()) {
				nodes.Go(func() error { return n.importArchive(ctx, path) })
			}
		}
		return nodes.Wait()
	})
}

// loadedArchives returns the archives of the images that were loaded.
func (s *sandbox) loadedArchives() ([]string, error) {
	paths, err := filepath.Glob(s.path("images", "*.tar"))
	if err != nil {
		return nil, fmt.Errorf("list loaded images: %w", err)
	}
	return paths, nil
}

// digest makes the name of an image, or a path, the name of a file.
func digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
}

// write writes the image as an archive in the format of `docker save`, whole
// or not at all.
func (i image) write(path string) error {
	draft, err := os.CreateTemp(filepath.Dir(path), "image-*")
	if err != nil {
		return fmt.Errorf("write image %s: %w", i.name, err)
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	err = errors.Join(i.writeArchive(draft), draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write image %s: %w", i.name, err)
	}
	return nil
}

func (i image) writeArchive(out io.Writer) error {
	var layer bytes.Buffer
	if err := i.writeLayer(&layer); err != nil {
		return err
	}
	diff := sha256.Sum256(layer.Bytes())
	config, err := json.Marshal(i.config("sha256:" + hex.EncodeToString(diff[:])))
	if err != nil {
		return fmt.Errorf("image config: %w", err)
	}
	id := sha256.Sum256(config)
	configName := hex.EncodeToString(id[:]) + ".json"
	manifest, err := json.Marshal([]map[string]any{{
		"Config": configName, "RepoTags": []string{i.name}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return fmt.Errorf("image manifest: %w", err)
	}
	archive := tar.NewWriter(out)
	return errors.Join(
		addBytes(archive, configName, 0o644, config),
		addBytes(archive, "layer.tar", 0o644, layer.Bytes()),
		addBytes(archive, "manifest.json", 0o644, manifest),
		archive.Close(),
	)
}

// config is the image's configuration, as the OCI image specification names
// its fields.
func (i image) config(diffID string) map[string]any {
	run := map[string]any{
		"Env":        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		"WorkingDir": "/",
		"User":       i.user,
	}
	if i.entrypoint != "" {
		run["Entrypoint"] = []string{i.entrypoint}
	} else {
		run["Cmd"] = []string{i.pathInImage(i.binaries[0])}
	}
	return map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       run,
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{diffID}},
	}
}

func (i image) writeLayer(out io.Writer) error {
	layer := tar.NewWriter(out)
	for _, dir := range []string{"etc", "usr", "usr/local", "usr/local/bin", "var", "var/lib"} {
		if err := layer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
			return err
		}
	}
	if err := layer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}); err != nil {
		return err
	}
	users := "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
	if err := addBytes(layer, "etc/passwd", 0o644, []byte(users)); err != nil {
		return err
	}
	for _, binary := range i.binaries {
		content, err := os.ReadFile(binary)
		if err != nil {
			return err
		}
		if err := addBytes(layer, strings.TrimPrefix(i.pathInImage(binary), "/"), 0o755, content); err != nil {
			return err
		}
	}
	return layer.Close()
}

func (i image) pathInImage(binary string) string {
	return "/usr/local/bin/" + filepath.Base(binary)
}

func addBytes(archive *tar.Writer, name string, mode int64, content []byte) error {
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := archive.Write(content)
	return err
}
