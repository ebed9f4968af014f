package schema

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// image checks where the etcd image comes from.
func (v *validator) image(i ImageSpec) {
	v.repository(i.Repository)
	if i.Digest == "" {
		return
	}
	const sha256Digits = 64
	digits, ok := strings.CutPrefix(i.Digest, "sha256:")
	if _, err := hex.DecodeString(digits); !ok || err != nil || len(digits) != sha256Digits || strings.ToLower(digits) != digits {
		v.fail("image.digest", "%s is not a digest: write sha256: and 64 hexadecimal digits in lower case", clip(i.Digest))
	}
}

// repository checks an image name without tag.
func (v *validator) repository(name string) {
	const field = "image.repository"
	if name == "" {
		return
	}
	last := name[strings.LastIndex(name, "/")+1:]
	switch {
	case strings.Contains(name, "://"):
		v.fail(field, "leave out the scheme: write registry/path")
	case strings.Contains(name, "@"):
		v.fail(field, "leave out the digest: the tag is v and spec.version, and a digest goes to spec.image.digest")
	case strings.Contains(last, ":") && strings.Contains(name, "/"), strings.Count(last, ":") > 1:
		v.fail(field, "leave out the tag: it is v and spec.version")
	case strings.Contains(last, ":"):
		v.fail(field, "leave out the tag, or write the path after registry:port")
	case !isRepository(name):
		v.fail(field, "%s is not an image repository: write registry/path in lower case, such as quay.io/coreos/etcd", clip(name))
	}
}

// isRepository accepts registry[:port]/path or path. The registry may have
// capitals, the path may not.
func isRepository(name string) bool {
	const longest = 255
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if i == 0 && len(parts) > 1 {
			host, port, hasPort := strings.Cut(part, ":")
			if _, err := strconv.ParseUint(port, 10, 16); hasPort && err != nil {
				return false
			}
			part = strings.ToLower(host)
		}
		if !isRepositoryPart(part) {
			return false
		}
	}
	return len(name) <= longest
}

// isRepositoryPart accepts lower-case letters and digits, with dots, dashes and
// underscores between them.
func isRepositoryPart(part string) bool {
	const separators = "._-"
	if part == "" || strings.Trim(part, separators) != part {
		return false
	}
	return !strings.ContainsFunc(part, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune(separators, r)
	})
}
