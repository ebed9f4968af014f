// Package driver is the contract between package backup and the kinds of object stores. Package backup implements file
// stores itself and gets the drivers of all others from its caller, so that nothing links a cloud SDK but the programs
// and the tests that use one.
package driver

import (
	"context"
	"errors"
	"io"
	"net/url"
	"time"

	"gocloud.dev/blob"
)

// CleanupTimeout bounds the removal of an unfinished upload, which also happens after the caller's ctx has ended.
const CleanupTimeout = 10 * time.Second

var (
	// ErrChanged is returned by a conditional write that found another version of the object.
	ErrChanged = errors.New("it was changed by another")
	// ErrExists is returned by Bucket.Upload when the object exists and the options say IfNotExist.
	ErrExists = errors.New("the object exists")
)

// Set has the drivers of a program by the schemes of their URLs.
type Set map[string]Driver

// Driver opens buckets of one kind of object store.
type Driver interface {
	// Open opens a bucket. u has the scheme, the bucket as its host, and the parameters of the object URL. An error
	// that the user can fix is a *Problem.
	Open(ctx context.Context, u *url.URL, access Access) (*Bucket, error)
	// Answer returns the answer of the store that an error of an operation contains, the zero value for none.
	Answer(err error) Answer
}

// Bucket is an open bucket. All functions but the bucket's own are optional.
type Bucket struct {
	*blob.Bucket

	// CloseIdle closes the idle connections of a transport that serves this bucket alone.
	CloseIdle func()
	// IfUnchanged returns a BeforeWrite callback, by which a write replaces only the version of the object that has
	// these attributes. nil: the store has no such condition.
	IfUnchanged func(*blob.Attributes) func(as func(any) bool)
	// Upload replaces the bucket's method of this name. It returns ErrExists and ErrChanged where it has compared by
	// itself, and otherwise the store's error. What it stored in part is removed, also when ctx has ended.
	Upload func(ctx context.Context, key string, r io.Reader, options *blob.WriterOptions) error
	// AbortUploads removes the parts of unfinished uploads of a key. nil: the store drops them by itself.
	AbortUploads func(ctx context.Context, key string) error
}

// Answer is what a store has answered in an error.
type Answer struct {
	// Status is the HTTP status.
	Status int
	// Code is the store's own name for the error. It may be empty.
	Code string
	// Text is the shortest text that still says why.
	Text string
}

// Problem is an error that the user can fix: what is wrong, and what to do next.
type Problem struct {
	Problem, Next string
	// Err is the cause, nil for none.
	Err error
}

func (p *Problem) Error() string { return p.Problem + "; " + p.Next }

func (p *Problem) Unwrap() error { return p.Err }

// Missing returns the error for a Secret without a key that the store needs.
func Missing(key, next string) error {
	return &Problem{Problem: "the Secret with the credentials lacks the key " + key, Next: next}
}
