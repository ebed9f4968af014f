package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// authorities is where Go looks for certificate authorities first. A volume mounted there replaces
// them.
const authorities = "etc/ssl/certs/ca-certificates.crt"

// file is one entry of a layer; a directory's name ends with a slash.
type file struct {
	name    string
	mode    int64
	owner   int
	content []byte
}

// baseLayer has what static binaries look for in a root: users, certificate authorities, a place for
// temporary files. Time zones are in the binary.
func baseLayer() (v1.Layer, error) {
	return layer([]file{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", user)},
		{name: "etc/passwd", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/home/nonroot:/sbin/nologin\n", user, user)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: authorities, mode: 0o644, content: trusted()},
		{name: "home/", mode: 0o755},
		{name: "home/nonroot/", mode: 0o700, owner: user},
		{name: "tmp/", mode: 0o1777},
	})
}

// programLayer has the binaries.
func programLayer(dir string) (v1.Layer, error) {
	files := []file{{name: "usr/", mode: 0o755}, {name: "usr/local/", mode: 0o755}, {name: bin + "/", mode: 0o755}}
	for _, b := range binaries() {
		content, err := os.ReadFile(filepath.Join(dir, b))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: bin + "/" + b, mode: 0o755, content: content})
	}
	return layer(files)
}

// trusted are the certificate authorities that Mozilla trusts, in PEM, as a module of the Go project has
// them: pinned in go.mod, so that two builds have the same. One that is trusted for some certificates
// only is left out, because a file cannot say which.
func trusted() []byte {
	var all []string
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			all = append(all, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})))
		}
	}
	slices.Sort(all)
	var text bytes.Buffer
	for _, one := range all {
		text.WriteString(one)
	}
	return text.Bytes()
}

// layer is a layer of the files. Their time is the epoch: it says nothing about them.
func layer(files []file) (v1.Layer, error) {
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	for _, f := range files {
		header := tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.content)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg}
		if f.content == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(&header); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.name, err)
		}
		if _, err := archive.Write(f.content); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching,
	)
}
