package convert

import (
	"net/url"
	"path"
	"strings"
)

// store is a place in an object store, as coreos/etcd-operator wrote it.
type store struct {
	scheme string
	// bucket and key are as written, not escaped; key may hold {{ .UID }}.
	bucket, key string
	endpoint    string
	pathStyle   bool
	secret      string
}

// uidMark is a placeholder for the unique part of the name of a backup.
const uidMark = "{{ .UID }}"

// url is the object URL of the store.
func (s store) url() string {
	parts := strings.Split(s.key, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(url.PathEscape(part), url.PathEscape(uidMark), uidMark)
		parts[i] = strings.NewReplacer("%7B%7B%20.Namespace%20%7D%7D", "{{ .Namespace }}", "%7B%7B%20.Name%20%7D%7D", "{{ .Name }}").Replace(parts[i])
	}
	text := s.scheme + "://" + url.PathEscape(s.bucket) + "/" + strings.Join(parts, "/")
	var query []string
	if s.endpoint != "" {
		query = append(query, "endpoint="+strings.NewReplacer("%3A", ":", "%2F", "/").Replace(url.QueryEscape(s.endpoint)))
	}
	if s.pathStyle && s.endpoint == "" {
		query = append(query, "use_path_style=true")
	}
	if len(query) > 0 {
		text += "?" + strings.Join(query, "&")
	}
	return text
}

// withUID puts the unique part before the extension of an object's name.
func withUID(key string) string {
	dir, base := path.Split(key)
	ext := path.Ext(base)
	if ext == base {
		ext = ""
	}
	return dir + strings.TrimSuffix(base, ext) + "-" + uidMark + ext
}

// storeNames are the field, the scheme and the Secret's field of each type of
// store that has an equal.
func storeNames(storageType string) (field, scheme, secret string) {
	switch storageType {
	case "S3":
		return "s3", "s3", "awsSecret"
	case "ABS":
		return "abs", "azblob", "absSecret"
	case "GCS":
		return "gcs", "gs", "gcpSecret"
	}
	return "", "", ""
}

// takeStore reads one store; at is where its notes go.
func (d *draft) takeStore(f field, storageType, at string) store {
	_, scheme, secret := storeNames(storageType)
	s := store{scheme: scheme}
	h := handlers{
		"path": func(f field) {
			value, _ := d.text(f)
			s.bucket, s.key, _ = strings.Cut(strings.Trim(value, "/"), "/")
		},
		secret: func(f field) { s.secret, _ = d.text(f) },
	}
	if storageType == "S3" {
		h["endpoint"] = func(f field) { s.endpoint = d.endpoint(f, at) }
		h["forcePathStyle"] = func(f field) { s.pathStyle = d.isTrue(f) }
	}
	d.walk(f, h)
	d.storeNotes(f, s, at)
	return s
}

// endpoint is the address of an S3-compatible server.
func (d *draft) endpoint(f field, at string) string {
	value, ok := d.text(f)
	if !ok {
		return ""
	}
	if !strings.Contains(value, "://") {
		value = "https://" + value
	}
	if u, err := url.Parse(value); err != nil || u.User != nil || u.RawQuery != "" {
		d.note(f.line, at, "%s is not a plain URL and was left out: add ?endpoint=https://HOST&region=REGION", f.path)
		return ""
	}
	d.note(f.line, at, "the region came from the key config of the Secret: add &region=REGION here if there is none in it")
	return value
}

// storeNotes tells what else the Secret of a store needs.
func (d *draft) storeNotes(f field, s store, at string) {
	if s.secret == "" {
		return
	}
	d.note(f.line, at, "the Secret %s needs the label quorate.dev/use: backups", word(s.secret))
	switch s.scheme {
	case "azblob":
		d.note(f.line, at, "the Secret %s needs the keys account and key, with what storage-account and storage-key hold. "+
			"For a cloud other than AzurePublicCloud add ?domain= and the domain of its blob service to the URL", word(s.secret))
	case "gs":
		d.note(f.line, at, "of the Secret %s only the key credentials.json is read: an access-token has no equivalent", word(s.secret))
	}
}

// setDestination writes the destination of backups.
func (d *draft) setDestination(at string, s store) {
	d.set(at+".objectURLTemplate", text(s.url()))
	if s.secret != "" {
		d.set(at+".credentials.secretName", text(s.secret))
	}
}
