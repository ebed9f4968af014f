package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// archivesOf are the files that `make archives` writes in a checkout and a release publishes, by name.
func archivesOf(t *testing.T, root string) map[string][]byte {
	t.Helper()
	to := filepath.Join(root, "bin", "archives")
	// An earlier release's would be published with these.
	if err := errors.Join(os.MkdirAll(to, 0o755), os.WriteFile(filepath.Join(to, "quorate_v0.9.0_linux_amd64.tar.gz"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "make", "archives")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "MAKEFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make archives: %v\n%s", err, out)
	}
	files := map[string][]byte{}
	for _, pattern := range published(t) {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(paths) == 0 && !strings.Contains(pattern, ".zip") {
			t.Fatalf("%d files are published by %s, %v", len(paths), pattern, err)
		}
		for _, path := range paths {
			if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	return files
}

// published are the patterns of the files that the workflow publishes.
func published(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", ".github", "workflows", "release.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, patterns, there := strings.Cut(string(text), "--generate-notes ")
	patterns, _, _ = strings.Cut(patterns, "\n")
	if !there {
		t.Fatal("the workflow publishes nothing")
	}
	return strings.Fields(patterns)
}

// copied copies files of the top of this checkout into another.
func copied(t *testing.T, to string, names ...string) {
	t.Helper()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err := errors.Join(err, os.WriteFile(filepath.Join(to, name), text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// untar are the files of a .tar.gz, which are in order, of no owner and of one time.
func untar(t *testing.T, content []byte, at time.Time) (names []string, files map[string]string) {
	t.Helper()
	from, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for archive := tar.NewReader(from); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names, files
		}
		text, errRead := io.ReadAll(archive)
		if err := errors.Join(err, errRead); err != nil {
			t.Fatal(err)
		}
		mode := int64(0o644)
		if filepath.Base(h.Name) == "quorate" {
			mode = 0o755
		}
		if !h.ModTime.Equal(at) || h.Uid != 0 || h.Gid != 0 || h.Uname != "root" || h.Gname != "root" || h.Mode != mode {
			t.Errorf("%s is %+v", h.Name, h)
		}
		names, files[h.Name] = append(names, h.Name), string(text)
	}
}

// An archive has all that a user needs, and its checksum; two clones on machines with different
// settings give the same ones, and another commit, which no tag names, does not.
func TestTwoClonesGiveTheSameArchives(t *testing.T) {
	origin := small(t)
	first := archivesOf(t, cloneOf(t, origin, "here"))
	there := cloneOf(t, origin, "somewhere", "else")
	t.Setenv("POD_NAMESPACE", "elsewhere")
	t.Setenv("GOFLAGS", "-tags=other")
	if second := archivesOf(t, there); !maps.EqualFunc(first, second, bytes.Equal) {
		t.Errorf("%s\nand\n%s", first["SHA256SUMS"], second["SHA256SUMS"])
	}
	git(t, there, "commit", "-q", "--allow-empty", "-m", "Go on")
	snapshot := "quorate_0.0.0-" + git(t, there, "rev-parse", "--short=7", "HEAD") + "_linux_amd64.tar.gz"
	if third := archivesOf(t, there); len(third) != len(first) || third[snapshot] == nil {
		t.Errorf("a commit without a tag has the archives %s", third["SHA256SUMS"])
	}
	want := []string{"SHA256SUMS"}
	sums := map[string]bool{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, architecture := range []string{"amd64", "arm64"} {
			name := "quorate_v1.2.3_" + system + "_" + architecture + ".tar.gz"
			if system == "windows" {
				name = strings.TrimSuffix(name, ".tar.gz") + ".zip"
			}
			want = append(want, name)
			sums[fmt.Sprintf("%x  %s\n", sha256.Sum256(first[name]), name)] = true
		}
	}
	if got := slices.Sorted(maps.Keys(first)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("the archives are %v", got)
	}
	for line := range strings.Lines(string(first["SHA256SUMS"])) {
		if !sums[line] {
			t.Errorf("no archive has the sum %s", line)
		}
		delete(sums, line)
	}
	if len(sums) > 0 {
		t.Errorf("no sums are there for %v", sums)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	names, files := untar(t, first["quorate_v1.2.3_darwin_arm64.tar.gz"], at)
	top := "quorate_v1.2.3_darwin_arm64/"
	contents := []string{top + "LICENSE", top + "README.md", top + "completions/_quorate", top + "completions/quorate.bash", top + "completions/quorate.fish", top + "completions/quorate.ps1", top + "man/man1/quorate.1", top + "quorate"}
	if !slices.Equal(names, contents) || files[top+"LICENSE"] != "Take it.\n" || files[top+"completions/_quorate"] != "[completion zsh] \n" || files[top+"man/man1/quorate.1"] != ".TH\n" {
		t.Errorf("%q, %q", names, files[top+"completions/_quorate"])
	}
	if program := files[top+"quorate"]; !strings.HasPrefix(program, "\xcf\xfa\xed\xfe") {
		t.Errorf("the program for darwin begins with %q", program[:min(4, len(program))])
	}
	zipped, err := zip.NewReader(bytes.NewReader(first["quorate_v1.2.3_windows_amd64.zip"]), int64(len(first["quorate_v1.2.3_windows_amd64.zip"])))
	if err != nil || len(zipped.File) != len(contents) {
		t.Fatalf("the archive for Windows: %v, %d files", err, len(zipped.File))
	}
	for i, f := range zipped.File {
		if name := strings.Replace(contents[i], "darwin_arm64", "windows_amd64", 1); f.Name != name && f.Name != name+".exe" || !f.Modified.Equal(at) {
			t.Errorf("%s is there for %s, of %s", f.Name, name, f.Modified)
		}
	}
}

// The archive of quorate itself, for this machine: it runs, says its commit, and has the man page
// of each command and what shells complete. A second build is the same.
func TestQuorateIsOneArchive(t *testing.T) {
	origin := git(t, ".", "rev-parse", "--show-toplevel")
	clone := cloneOf(t, origin, "here")
	config := filepath.Join(clone, ".goreleaser.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	one := strings.NewReplacer("goos: [linux, darwin, windows]", "goos: ["+runtime.GOOS+"]", "goarch: [amd64, arm64]", "goarch: ["+runtime.GOARCH+"]").Replace(string(text))
	if err := os.WriteFile(config, []byte(one), 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, clone, "commit", "-q", "-a", "-m", "Build for one platform")
	first, second := archivesOf(t, clone), archivesOf(t, cloneOf(t, clone, "somewhere", "else"))
	if len(first) != 2 || !maps.EqualFunc(first, second, bytes.Equal) {
		t.Errorf("%s and %s", first["SHA256SUMS"], second["SHA256SUMS"])
	}
	at, err := time.Parse(time.RFC3339, git(t, clone, "log", "-1", "--format=%cI"))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Fields(string(first["SHA256SUMS"]))[1]
	_, files := untar(t, first[name], at)
	top := strings.TrimSuffix(name, ".tar.gz") + "/"
	program := filepath.Join(t.TempDir(), "quorate")
	if err := os.WriteFile(program, []byte(files[top+"quorate"]), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, "version", "-o", "json").Output()
	if err != nil || !strings.Contains(string(out), `"commit": "`+git(t, clone, "rev-parse", "HEAD")+`"`) || strings.Contains(string(out), "dirty") {
		t.Errorf("it is %s, %v", out, err)
	}
	for path, has := range map[string]string{
		"man/man1/quorate-run.1": `.TH "QUORATE-RUN" "1" "` + at.UTC().Format(time.DateOnly) + `"`, "man/man1/quorate-snapshot-list.1": ".SH OPTIONS", "LICENSE": "Apache License", "README.md": "quorate",
		"completions/quorate.bash": "__start_quorate", "completions/_quorate": "#compdef quorate", "completions/quorate.fish": "complete -c quorate", "completions/quorate.ps1": "Register-ArgumentCompleter",
	} {
		if !strings.Contains(files[top+path], has) {
			t.Errorf("%s has no %s: %.200s", path, has, files[top+path])
		}
	}
}
