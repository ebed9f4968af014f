package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// cli is the binary of the archives: what people run on their machines.
const cli = "quorate"

// archived are the platforms of the archives.
func archived() (platforms []v1.Platform) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, architecture := range []string{"amd64", "arm64"} {
			platforms = append(platforms, v1.Platform{OS: system, Architecture: architecture})
		}
	}
	return platforms
}

// archives writes an archive for each platform into a directory, and SHA256SUMS: the binary,
// its man pages, its completions of shells, the licence and README.md. Two builds of one commit
// write the same bytes: names are sorted, all times are the commit's, and there is no owner.
func archives(ctx context.Context, root, to string, platforms []v1.Platform) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("create the directory of the archives: %w", err)
	}
	former, _ := filepath.Glob(filepath.Join(to, cli+"_*")) // the pattern is a good one
	for _, archive := range former {
		if err := os.Remove(archive); err != nil {
			return fmt.Errorf("remove a former archive: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", "quorate-archives-*")
	if err != nil {
		return fmt.Errorf("build the archives: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	common, err := documents(ctx, root, dir)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, p := range platforms {
		name, content, err := archive(ctx, root, dir, p, common)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), content, 0o644)
		}
		if err != nil {
			return fmt.Errorf("build the archive for %s: %w", p, err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
	}
	if err := os.WriteFile(filepath.Join(to, "SHA256SUMS"), []byte(sums.String()), 0o644); err != nil {
		return fmt.Errorf("write the checksums of the archives: %w", err)
	}
	return nil
}

// archive is the archive of one platform, and its name.
func archive(ctx context.Context, root, dir string, p v1.Platform, common []file) (name string, content []byte, err error) {
	at := filepath.Join(dir, p.OS+"-"+p.Architecture)
	if err := compile(ctx, root, at, p, cli); err != nil {
		return "", nil, err
	}
	binary, pack, ending := cli, tarOf, ".tar.gz"
	if p.OS == "windows" {
		binary, pack, ending = cli+".exe", zipOf, ".zip"
	}
	var of facts
	if err := of.read(at, binary); err != nil {
		return "", nil, err
	}
	program, err := os.ReadFile(filepath.Join(at, binary))
	if err != nil {
		return "", nil, err
	}
	top := strings.Join([]string{cli, of.version, p.OS, p.Architecture}, "_")
	var files []file
	for _, f := range append([]file{{name: binary, mode: 0o755, content: program}}, common...) {
		f.name = path.Join(top, f.name)
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	content, err = pack(files, of.at.UTC())
	return top + ending, content, err
}

// documents are what all archives have, made by a binary for this machine.
func documents(ctx context.Context, root, dir string) ([]file, error) {
	here := filepath.Join(dir, "here")
	if err := compile(ctx, root, here, v1.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}, cli); err != nil {
		return nil, err
	}
	quorate := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, filepath.Join(here, cli), args...)
		cmd.Env = []string{"HOME=" + here} // the environment has defaults of some flags
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("run quorate %s: %w", strings.Join(args, " "), err)
		}
		return text, nil
	}
	var files []file
	for _, name := range []string{"LICENSE", "README.md"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, fmt.Errorf("read what goes into the archives: %w", err)
		}
		files = append(files, file{name: name, mode: 0o644, content: text})
	}
	for shell, name := range map[string]string{"bash": "quorate.bash", "zsh": "_quorate", "fish": "quorate.fish", "powershell": "quorate.ps1"} {
		text, err := quorate("completion", shell)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: "completions/" + name, mode: 0o644, content: text})
	}
	man := filepath.Join(dir, "man")
	if _, err := quorate("docs", "--man", man); err != nil {
		return nil, err
	}
	pages, err := fs.Glob(os.DirFS(man), "*.1")
	if err != nil || len(pages) == 0 {
		return nil, fmt.Errorf("quorate docs --man wrote %d pages: %w", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(man, page))
		if err != nil {
			return nil, fmt.Errorf("read a man page: %w", err)
		}
		files = append(files, file{name: "man/man1/" + page, mode: 0o644, content: text})
	}
	return files, nil
}

// tarOf is a .tar.gz of files.
func tarOf(files []file, at time.Time) ([]byte, error) {
	var content bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&content, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	to := tar.NewWriter(compressed)
	for _, f := range files {
		header := tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if err := to.WriteHeader(&header); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.name, err)
		}
		if _, err := to.Write(f.content); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	if err := errors.Join(to.Close(), compressed.Close()); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}

// zipOf is a .zip of files, for Windows.
func zipOf(files []file, at time.Time) ([]byte, error) {
	var content bytes.Buffer
	to := zip.NewWriter(&content)
	for _, f := range files {
		header := zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(fs.FileMode(f.mode))
		entry, err := to.CreateHeader(&header)
		if err == nil {
			_, err = entry.Write(f.content)
		}
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	if err := to.Close(); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}
