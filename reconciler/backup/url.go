package backup

import (
	"net/url"
	"path"
	"strings"
)

// target is an object URL taken apart.
type target struct {
	scheme string
	// bucket is the bucket or container; for file, the object's directory.
	bucket string
	// root is, for file only, the directory that must exist.
	root string
	key  string
	// name is the URL without its query, as errors and manifests show it.
	name  string
	query url.Values
}

// parseURL takes an object URL apart. Its errors repeat nothing of a URL
// that may hold a secret.
func parseURL(op, objectURL string) (target, error) {
	bad := func(problem string) (target, error) {
		return target{}, &storeError{op: op, object: "object URL", problem: problem, next: "write it as s3://bucket/key?endpoint=…&region=…, gs://bucket/key, azblob://container/key or file:///dir/key"}
	}
	u, err := url.Parse(objectURL)
	if err != nil {
		return bad("it is not a URL")
	}
	if u.User != nil {
		return bad("it contains credentials, which belong in quorate's environment")
	}
	t := target{scheme: u.Scheme, bucket: u.Host, key: strings.TrimPrefix(u.Path, "/"), query: u.Query()}
	t.name = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	switch {
	case t.key == "" || path.Clean("/"+t.key) != "/"+t.key:
		return bad("its path is not a plain key: empty, or with //, /./, /../ or / at its end")
	case t.query.Has("prefix") || t.query.Has("key"):
		// The blob package would read these two as a second way to say the key.
		return bad("it has the parameter prefix or key, but the key is its path")
	}
	switch u.Scheme {
	case "s3":
		if problem := prepareS3Query(t.query); problem != "" {
			return bad(problem)
		}
	case "file":
		return fileTarget(t, bad)
	case "gs", "azblob":
	default:
		return bad("its scheme is not s3, gs, azblob or file")
	}
	if t.bucket == "" {
		return bad("it names no bucket")
	}
	return t, nil
}

// prepareS3Query checks the endpoint and puts the bucket in the path: with an
// endpoint of one's own, bucket.HOST rarely resolves, and never for an IP. It
// also turns off the SDK's own check of what it reads: sha256 is checked here,
// and says damage where the SDK would say that the request failed. Checksums of
// what is written are as little needed, since it is read back, and other stores
// than Amazon's refuse them in many ways: with an endpoint none are sent, unless
// the URL asks for them.
func prepareS3Query(q url.Values) (problem string) {
	if !q.Has("response_checksum_validation") {
		q.Set("response_checksum_validation", "when_required")
	}
	if !q.Has("endpoint") {
		return ""
	}
	e, err := url.Parse(q.Get("endpoint"))
	switch {
	case err != nil || e.Host == "" || e.Scheme != "http" && e.Scheme != "https":
		return "its endpoint is not an http or https URL"
	case e.User != nil:
		return "its endpoint contains credentials, which belong in quorate's environment"
	}
	if !q.Has("request_checksum_calculation") {
		q.Set("request_checksum_calculation", "when_required")
	}
	if !q.Has("use_path_style") && !q.Has("s3ForcePathStyle") {
		q.Set("use_path_style", "true")
	}
	return ""
}

// fileTarget fills in a file URL. Its blob bucket is the object's own directory,
// so that looking for one object never walks another's.
func fileTarget(t target, bad func(string) (target, error)) (target, error) {
	full := "/" + t.key
	first, _, nested := strings.Cut(t.key, "/")
	t.root = "/" + first
	if t.query.Has("root") {
		t.root = path.Clean(t.query.Get("root"))
	}
	switch {
	case t.bucket != "":
		return bad("a file URL has three slashes: file:///dir/key")
	case !nested:
		return bad("it names no directory")
	case !strings.HasPrefix(full, strings.TrimSuffix(t.root, "/")+"/"):
		return bad("its path is not below its root")
	}
	for param := range t.query {
		if param != "root" {
			return bad("a file URL takes no parameter but root")
		}
	}
	t.bucket, t.key = path.Dir(full), path.Base(full)
	return t, nil
}
