package backup

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"

	"gocloud.dev/gcerrors"

	"github.com/quorate/quorate/reconciler/backup/driver"
)

// storeError is one sentence about a backup that went wrong: the operation, the
// object without anything secret, the problem, its cause, and what to do next.
type storeError struct {
	op, object, problem, cause, next string
	err                              error
	// answer is what the store has answered in err.
	answer driver.Answer
}

func (e *storeError) Error() string {
	text := e.op + " " + e.object + ": " + e.problem
	if e.cause != "" {
		text += ": " + e.cause
	}
	return text + "; " + e.next
}

func (e *storeError) Unwrap() error { return e.err }

// leftoverError adds to an error that the failed backup's object may still be
// in the store.
type leftoverError struct {
	error
	cause string
}

func (e *leftoverError) Error() string {
	return e.error.Error() + " (the uploaded object could not be deleted: " + e.cause + "; delete it by hand)"
}

func (e *leftoverError) Unwrap() error { return e.error }

// wrap makes the error of a cause, whose text is not repeated.
func (s *object) wrap(problem, next string, err error) *storeError {
	return &storeError{op: s.op, object: s.target.name, problem: problem, next: next, err: err, answer: s.answer(err)}
}

// problem makes the error for something that quorate itself found.
func (s *object) problem(problem, next string, err error) error {
	e := s.wrap(problem, next, err)
	if err != nil {
		e.cause = s.cause(err)
	}
	return e
}

// damaged makes the error for an object that is not what its manifest says. It wraps
// ErrDamaged.
func (s *object) damaged(problem string, err error) error {
	e := s.wrap(problem, "this backup cannot be restored: take a new one", errors.Join(ErrDamaged, err))
	if err != nil {
		e.cause = s.cause(err)
	}
	return e
}

// exists makes the error for an object that must not be overwritten.
func (s *object) exists(err error) error {
	return s.problem("something is stored there already, and a backup never overwrites another", "use a new object name, with {{ .UID }} in the URL template", err)
}

// noBackup makes the error that wraps ErrNotFound.
func (s *object) noBackup(err error) error {
	return s.wrap(ErrNotFound.Error(), "take a backup, or correct the object URL", errors.Join(ErrNotFound, err))
}

// noBucket makes the error for a bucket that does not exist.
func (s *object) noBucket(err error) error {
	return s.problem("the bucket "+s.target.bucket+" does not exist, or is in another region", "create it or correct the object URL", err)
}

// absent tells a missing manifest from a missing bucket, which the stores answer
// alike.
func (s *object) absent(ctx context.Context, err error) error {
	if s.target.scheme == "file" {
		return s.noBackup(err)
	}
	ok, aerr := s.bucket.IsAccessible(ctx)
	switch {
	case aerr != nil && !s.denied(aerr):
		return s.failed(aerr)
	case aerr == nil && !ok:
		return s.noBucket(err)
	}
	return s.noBackup(err)
}

// failed makes the error for an answer, or the silence, of the store.
func (s *object) failed(err error) error {
	own, untrusted := (*storeError)(nil), (*tls.CertificateVerificationError)(nil)
	switch code := gcerrors.Code(err); {
	case errors.As(err, &own):
		return err
	case s.watch.why() != nil:
		return s.silent()
	case strings.Contains(err.Error(), "get credentials:"):
		// The AWS SDK has no error type for this one, and its last attempt, the
		// metadata service of EC2, would pass for the store being unreachable.
		return s.problem("no credentials for the store were found", "give quorate the store's credentials in a Secret or in its environment", err)
	case errors.As(err, &untrusted):
		return s.problem("the store's certificate is not trusted", "put the certificate of its CA into the key ca.crt of the Secret with the credentials, and check the host name of the endpoint", untrusted.Err)
	case unreachable(err):
		return s.problem("the store cannot be reached", "check the endpoint, DNS and network policies", err)
	case errors.Is(err, context.DeadlineExceeded):
		return s.problem("the store did not answer in time", "check that the store is healthy, or allow more time", err)
	case errors.Is(err, context.Canceled):
		return s.problem("the operation was cancelled", "it is tried again with the next pass", err)
	case archived(s.answer(err)):
		return s.problem("it is archived and cannot be read at once", "have the store bring it back, and leave manifests out of the rule that archives them", err)
	case locked(err):
		return s.problem("the store keeps it as it is, by a lock or a retention policy", "wait until that ends, or end it there", err)
	case s.denied(err):
		return s.problem("permission denied", "check the store's credentials "+s.origin()+" and their rights to list, read, write and delete in "+s.target.bucket, err)
	case code == gcerrors.FailedPrecondition || code == gcerrors.AlreadyExists:
		return s.exists(err)
	case code == gcerrors.NotFound:
		// Absent objects are asked for in absent; a write misses only a bucket.
		return s.noBucket(err)
	}
	return s.problem("the store failed", "look at the store's own state, then try again", err)
}

// origin says where the credentials come from.
func (s *object) origin() string {
	if !s.store.FromEnvironment() {
		return "in the Secret"
	}
	return "in quorate's environment"
}

// cause is the shortest text that still says why, on one line and without the
// URL's query: openers and SDKs quote whole URLs.
func (s *object) cause(err error) string {
	text := err.Error()
	opErr, request := (*net.OpError)(nil), (*url.Error)(nil)
	switch answer := s.answer(err); {
	case answer.Text != "":
		text = answer.Text
	case errors.As(err, &opErr):
		text = opErr.Error()
	case errors.As(err, &request):
		// Its URL may be a signed one.
		text = request.Err.Error()
	}
	if q := s.target.query.Encode(); q != "" {
		text = strings.ReplaceAll(text, q, "…")
	}
	return strings.Join(strings.Fields(text), " ")
}

// answer returns what the store has answered in an error, the zero value for nothing.
func (s *object) answer(err error) driver.Answer {
	a := recordedAnswer(err)
	if d := s.driver(); d != nil && err != nil && a == (driver.Answer{}) {
		return d.Answer(err)
	}
	return a
}

// recordedAnswer returns what the store has answered in an error that an operation has returned.
func recordedAnswer(err error) driver.Answer {
	if own := (*storeError)(nil); errors.As(err, &own) {
		return own.answer
	}
	return driver.Answer{}
}

// denied reports whether the store refused the credentials or their rights.
// The status decides, because the blob package takes Google's 403 for not found
// and does not know S3's InvalidAccessKeyId and SignatureDoesNotMatch.
func (s *object) denied(err error) bool {
	code := s.answer(err).Status
	return code == http.StatusForbidden || code == http.StatusUnauthorized ||
		errors.Is(err, os.ErrPermission) || gcerrors.Code(err) == gcerrors.PermissionDenied
}

// unreachable reports whether no answer came for want of a connection.
func unreachable(err error) bool {
	opErr, dnsErr := (*net.OpError)(nil), (*net.DNSError)(nil)
	return errors.As(err, &opErr) || errors.As(err, &dnsErr)
}

// notFound reports whether the store answered that there is no such object or
// bucket. An unknown host is not an answer, though the blob package takes it for
// one in Azure.
func (s *object) notFound(err error) bool {
	return gcerrors.Code(err) == gcerrors.NotFound && !s.denied(err) && !unreachable(err)
}

// archived reports whether the object lies where it cannot be read from at once.
func archived(a driver.Answer) bool {
	return slices.Contains([]string{"InvalidObjectState", "BlobArchived", "BlobBeingRehydrated"}, a.Code)
}

// locked reports whether an object lock or a retention policy keeps the object as it is.
// Few stores have a code for it.
func locked(err error) bool {
	text := strings.ToLower(err.Error())
	return slices.ContainsFunc([]string{"object lock", "worm protected", "blobimmutabledueto", "retentionpolicynotmet", "retention policy"}, func(word string) bool {
		return strings.Contains(text, word)
	})
}

// Refused reports whether the store has answered that it does not do this to this
// object: for want of a right, or because a lock, a retention policy or an archive keeps
// it as it is. Another object may fare better, and the same one another day. A store
// that is away or overloaded, or does not know the credentials, has refused nothing.
func Refused(err error) bool {
	answer := recordedAnswer(err)
	switch answer.Code {
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "ExpiredToken", "AuthenticationFailed":
		return false
	case "InvalidRequest": // so MinIO and others say that a lock is on the object
		return true
	}
	switch answer.Status {
	case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusConflict:
		return true
	}
	return errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// aboutObject reports whether an error may be about one object alone: the store has
// answered, and may answer otherwise about the next one.
func aboutObject(err error) bool {
	code, path := recordedAnswer(err).Status, (*os.PathError)(nil)
	return code != 0 && code != http.StatusUnauthorized || errors.As(err, &path)
}
