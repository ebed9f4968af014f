package signing

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/quorate/quorate/reconciler/memo"
)

// Keys are those of an installation: its own, by which it signs, and others that it trusts
// as much. They are in files that others replace while it runs, such as the kubelet, and
// are read each time that they are needed. nil has none.
type Keys struct {
	own     *file[*Key]
	trusted *file[[]string]
}

// OpenKeys reads the file with the private key and that with the public ones for the first
// time; "" for none.
func OpenKeys(keyFile, trustedFile string, log *slog.Logger) (*Keys, error) {
	if keyFile == "" && trustedFile == "" {
		return nil, nil
	}
	k := &Keys{
		own:     &file[*Key]{path: keyFile, parse: ParseKey, log: log},
		trusted: &file[[]string]{path: trustedFile, parse: ParsePublicKeys, log: log},
	}
	if err := k.own.read(); err != nil {
		return nil, fmt.Errorf("read the key that signs backups: %w", err)
	}
	if err := k.trusted.read(); err != nil {
		return nil, fmt.Errorf("read the keys of backups that are trusted: %w", err)
	}
	return k, nil
}

// Own is the key that signs, nil for none.
func (k *Keys) Own() *Key {
	if k == nil {
		return nil
	}
	return k.own.current()
}

// Trusted are the fingerprints of the keys that are trusted: its own and those of the
// others. Without any, nothing need be signed.
func (k *Keys) Trusted() []string {
	if k == nil {
		return nil
	}
	trusted := slices.Clone(k.trusted.current())
	if own := k.own.current(); own != nil && !slices.Contains(trusted, own.fingerprint) {
		trusted = append([]string{own.fingerprint}, trusted...)
	}
	return trusted
}

// file is a value that is read from a file, again when that is another one.
type file[T any] struct {
	path  string
	parse func([]byte) (T, error)
	log   *slog.Logger

	mu     sync.Mutex
	text   []byte
	inUse  T
	failed memo.Once
}

// current is what the file says or, where that cannot be used, what it said before: to
// sign no more, or to trust nothing, would be no answer to a file that is half written.
func (f *file[T]) current() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	why := ""
	if err := f.read(); err != nil {
		why = err.Error()
	}
	if f.failed.Changed("file", "error", why) && why != "" {
		f.log.Error("keys of backups not replaced, those before stay in use", "error", why)
	}
	return f.inUse
}

// read takes up what the file holds, if it is new.
func (f *file[T]) read() error {
	if f.path == "" {
		return nil
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	if f.text != nil && bytes.Equal(text, f.text) {
		return nil
	}
	value, err := f.parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.text, f.inUse = text, value
	f.log.Info("keys of backups in use", "file", f.path, "keys", fmt.Sprint(value))
	return nil
}
