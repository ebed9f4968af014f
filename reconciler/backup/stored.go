package backup

import (
	"context"
	"io"
)

// OpenStored reads the object at objectURL as it is stored, from a byte on. Neither its
// manifest is read nor anything checked: it is for who was told what to expect. Errors:
// ErrNotFound when the store says that there is no such object.
func (st Store) OpenStored(ctx context.Context, objectURL string, from int64) (io.ReadCloser, error) {
	s, ctx, err := st.open(ctx, "read backup", objectURL, reading)
	if err != nil {
		return nil, err
	}
	r, err := s.bucket.NewRangeReader(ctx, s.key, from, -1, nil)
	switch {
	case s.notFound(err):
		err = s.absent(ctx, err)
	case err != nil:
		err = s.failed(err)
	default:
		return &storedObject{Reader: s.watch.reader(ctx, r), s: s, close: r.Close}, nil
	}
	s.close()
	return nil, err
}

// FileRoot is the directory that must be there for a file URL: where its volume is
// mounted. It is empty for all other URLs.
func FileRoot(objectURL string) string {
	t, err := parseURL("", objectURL)
	if err != nil {
		return ""
	}
	return t.root
}

// storedObject is an object that is read as it is stored.
type storedObject struct {
	io.Reader
	s     *object
	close func() error
}

// Close ends the reading.
func (o *storedObject) Close() error {
	err := o.close()
	o.s.close()
	return err
}
