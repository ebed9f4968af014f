package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/reconciler/restore"
	"github.com/quorate/quorate/reconciler/stores"
)

// patience bounds a download by its progress, however large it is. Without any, the
// first trouble ends it.
type patience struct {
	// stall is how long the store may send nothing before it is asked again, and giveUp
	// how long there may be no new byte before the step ends.
	stall, giveUp time.Duration
	// first is the pause after the first trouble, which doubles up to most.
	first, most time.Duration
}

// restorePatience is that of a restore: longer than it takes until an offer that has
// expired is renewed and the kubelet has written it into the pod, and, in a drill, much
// shorter than the drill may take.
func restorePatience() patience {
	return patience{stall: time.Minute, giveUp: 20 * time.Minute, first: time.Second, most: 30 * time.Second}
}

// measured is what was fetched of the stored object.
type measured struct {
	size int64
	sum  string
}

func (m measured) String() string { return fmt.Sprintf("%d bytes and sha256 %s", m.size, m.sum) }

// errOtherBytes says that the store has given the same other object twice.
var errOtherBytes = fmt.Errorf("%w: it has other bytes", restore.ErrUnfit)

// fetch stores the snapshot in a file, decrypted and decompressed, and wants the object to be the one
// that was verified. Only what the store gives twice is errOtherBytes, and even that may come
// from a proxy that answers in the store's place. Its errors repeat neither the URL nor the key.
func (b storedBackup) fetch(ctx context.Context, path string) error {
	want, before := measured{b.size, b.sum}, measured{}
	for range 2 {
		got, err := b.download(ctx, path)
		switch {
		case err != nil:
			return fmt.Errorf("fetch the backup: %w", err)
		case got == want:
			return nil
		case got == before:
			return fmt.Errorf("%w: %s, and the one that was verified has %s", errOtherBytes, got, want)
		}
		before = got
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("fetch the backup: %w", err)
		}
	}
	return fmt.Errorf("fetch the backup: the store gives other bytes each time, the last time %s, and the backup that was verified has %s: look at what answers in its place", before, want)
}

// download fetches the object once, and measures it.
func (b storedBackup) download(ctx context.Context, path string) (measured, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return measured{}, err
	}
	object := &download{ctx: ctx, open: b.open, size: b.size, limits: b.limits, log: b.log, since: time.Now()}
	defer object.drop()
	hash := sha256.New()
	stored := io.TeeReader(object, hash)
	err = b.write(f, stored)
	disk := (*fs.PathError)(nil)
	if err != nil && object.err == nil && !errors.As(err, &disk) {
		// What cannot be decrypted or decompressed is another object, or the key is another's: the
		// checksum tells.
		if _, rest := io.Copy(io.Discard, stored); rest == nil && hex.EncodeToString(hash.Sum(nil)) != b.sum {
			err = nil
		}
	}
	// It need not outlive a power cut: what is made of it is put on the disk, and a
	// later try fetches it again.
	if err := errors.Join(object.err, f.Close()); err != nil {
		return measured{}, err
	}
	return measured{object.at, hex.EncodeToString(hash.Sum(nil))}, err
}

// offer is how the object can be read just now: by a URL, with the certificate of the
// store's CA, or as an object in a store that is reached with credentials.
type offer struct{ url, ca, object string }

// offered reads the offer. In a pod it is a mounted Secret, which is renewed for as long
// as the pod runs: it is read for each try.
func (b storedBackup) offered() (offer, error) {
	if b.offer == "" {
		return offer{url: b.url, ca: b.ca}, nil
	}
	secret, err := readSecret(b.offer)
	if err != nil {
		return offer{}, err
	}
	o := offer{url: string(secret[stores.KeyURL]), ca: string(secret[stores.KeyCA]), object: string(secret[stores.KeyObject])}
	if o.url == "" && o.object == "" {
		return o, finalError{errors.New("the Secret that offers it names nothing")}
	}
	return o, nil
}

// open asks for the object from a byte on. A server that knows no ranges begins at the
// first one all the same.
func (b storedBackup) open(ctx context.Context, from int64) (body io.ReadCloser, begins int64, err error) {
	o, err := b.offered()
	if err != nil {
		return nil, 0, err
	}
	if o.object != "" {
		body, err = b.openObject(ctx, o.object, from)
		return body, from, err
	}
	return o.get(ctx, from)
}

// openObject reads the object with the credentials that this process has.
func (b storedBackup) openObject(ctx context.Context, objectURL string, from int64) (io.ReadCloser, error) {
	store := backup.Store{Drivers: clouds.Drivers()}
	if b.credentials != "" {
		var err error
		if store.Credentials, err = readSecret(b.credentials); err != nil {
			return nil, finalError{err}
		}
	}
	body, err := store.OpenStored(ctx, objectURL, from)
	if err != nil && (errors.Is(err, backup.ErrNotFound) || strings.HasPrefix(objectURL, "file:")) {
		return nil, finalError{err}
	}
	return body, err
}

// get asks for the object by its URL.
func (o offer) get(ctx context.Context, from int64) (body io.ReadCloser, begins int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.url, nil)
	if err != nil {
		return nil, 0, finalError{errors.New("the URL is not understood")}
	}
	req.Header.Set("Accept-Encoding", "identity") // the bytes as they are stored
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	client, err := o.client()
	if err != nil {
		return nil, 0, finalError{err}
	}
	resp, err := client.Do(req)
	if err != nil {
		// The error repeats the URL; the wrapped one has the reason.
		return nil, 0, errors.Unwrap(err)
	}
	switch {
	case resp.StatusCode == http.StatusOK:
		return resp.Body, 0, nil
	case resp.StatusCode == http.StatusPartialContent && strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", from)):
		return resp.Body, from, nil
	}
	defer func() { _ = resp.Body.Close() }()
	return nil, 0, refusal(resp)
}

// refusal is the error of an answer without the object. A URL that has expired, or whose
// signer's keys have been replaced, is refused, and a new one may come; a store that is
// busy may answer later; all else stays as it is.
func refusal(resp *http.Response) error {
	err := fmt.Errorf("the store answers %s", resp.Status)
	switch code := resp.StatusCode; {
	case code == http.StatusBadRequest, code == http.StatusUnauthorized, code == http.StatusForbidden:
		// The answer may repeat the URL's parameters: no more than this is said of it.
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		if said := strings.ToLower(string(text)); strings.Contains(said, "expired") || strings.Contains(said, "not valid in the specified time frame") {
			return fmt.Errorf("%w: the URL has expired, and quorate has not written a new one into the Secret that offers the backup", err)
		}
		return err
	case code >= http.StatusInternalServerError, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
		return err
	}
	return finalError{err}
}

// client trusts the store's CA, too, where it has one of its own.
func (o offer) client() (*http.Client, error) {
	if o.ca == "" {
		return http.DefaultClient, nil
	}
	transport := backup.Trusting([]byte(o.ca))
	if transport == nil {
		return nil, errors.New("the CA of the store has no certificate in PEM")
	}
	transport.DisableKeepAlives = true // it is used once
	return &http.Client{Transport: transport}, nil
}
