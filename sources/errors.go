package sources

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// The kinds of error that a caller may ask for with errors.Is. None of them ever
// means that nothing is desired.
var (
	// ErrUnreachable is a server or disk that gives no usable answer.
	ErrUnreachable = errors.New("repository unreachable")
	// ErrRepositoryNotFound is an answer that there is no such repository. Some
	// hosts say so as well when the credentials may not see it.
	ErrRepositoryNotFound = errors.New("repository not found")
	// ErrAuthentication is a refusal of the credentials, or credentials that
	// cannot be read.
	ErrAuthentication = errors.New("authentication refused")
	// ErrEmptyRepository is a repository without any branch or tag. It is an
	// ErrBranchGone as well.
	ErrEmptyRepository = errors.New("repository empty")
	// ErrBranchGone is a repository without the watched branch, tag or commit.
	ErrBranchGone = errors.New("branch gone")
	// ErrPathGone is a commit without a directory at the watched path, or a
	// local path that does not exist.
	ErrPathGone = errors.New("path gone")
	// ErrRewritten is a head that does not descend from the accepted commit.
	ErrRewritten = errors.New("history rewritten")
	// ErrUntrusted is a commit without a good signature, or keys that cannot be
	// read.
	ErrUntrusted = errors.New("commit not trusted")
	// ErrRejected is a server that takes no push to the branch.
	ErrRejected = errors.New("push rejected")
	// ErrForeignBranch is a branch that is not this quorate's to write to.
	ErrForeignBranch = errors.New("branch of another owner")
	// ErrTooLarge is content that passes one of the Limits other than that of one file.
	ErrTooLarge = errors.New("too large")
)

// failure is every error of this package: what was being done, why it did not
// succeed, and what to do next, in one sentence. It keeps the kinds but not the
// error underneath, because that one may carry a secret in its text.
type failure struct {
	during string
	why    string
	next   string
	kinds  []error
	after  time.Duration // how long the server wants to be left alone
	head   Head          // the commit that was to be read, as far as it is known
}

// Head is the commit that was to be read when an error came up.
type Head struct {
	// Commit is its full hash; "" where none was known yet.
	Commit string
	// Subject, Author and When are as in a Snapshot, where the commit was read. Of one that
	// is not trusted they are no more than what it says of itself.
	Subject, Author string
	When            time.Time
}

// HeadOf is the commit that was to be read when an error came up.
func HeadOf(err error) Head {
	var f *failure
	if errors.As(err, &f) {
		return f.head
	}
	return Head{}
}

// RetryAfter is how long the server asked to be left alone with an error, 0 where
// it did not.
func RetryAfter(err error) time.Duration {
	var f *failure
	if errors.As(err, &f) {
		return f.after
	}
	return 0
}

func (f *failure) Error() string {
	text := f.why
	if f.during != "" {
		text = f.during + ": " + text
	}
	if f.next != "" {
		text += "; " + f.next
	}
	return text
}

func (f *failure) Unwrap() []error { return f.kinds }

func unreachable(why, next string) *failure {
	return &failure{why: why, next: next, kinds: []error{ErrUnreachable}}
}

func notFound(why, next string) *failure {
	return &failure{why: why, next: next, kinds: []error{ErrRepositoryNotFound}}
}

func unauthenticated(why, next string) *failure {
	return &failure{why: why, next: next, kinds: []error{ErrAuthentication}}
}

func pathGone(format string, args ...any) *failure {
	return &failure{
		why:   fmt.Sprintf(format, args...),
		next:  "restore it or correct the path",
		kinds: []error{ErrPathGone},
	}
}

// tooLarge is about files that are read. The limits are fixed: no flag raises one.
func tooLarge(format string, args ...any) *failure {
	return &failure{
		why:   fmt.Sprintf(format, args...),
		next:  "split it, or read less with --path, --include or --ignore, or by naming fewer paths",
		kinds: []error{ErrTooLarge},
	}
}

// tooMuch is about what a server sends for the whole commit, whatever is read of it.
func tooMuch(format string, args ...any) *failure {
	return &failure{
		why:   fmt.Sprintf(format, args...),
		next:  "keep the files in a smaller repository of their own",
		kinds: []error{ErrTooLarge},
	}
}

func emptyRepository() *failure {
	return &failure{
		why:   "the repository has no branches",
		next:  "push the branch",
		kinds: []error{ErrEmptyRepository, ErrBranchGone},
	}
}

func damaged(what string, err error) *failure {
	return unreachable(
		fmt.Sprintf("%s cannot be read from the repository (%s)", what, oneLine(err.Error())),
		"if it lasts, check the repository with git fsck")
}

// explain gives an error its operation. A context that has ended goes first:
// whatever else was seen then is only its consequence.
func explain(ctx context.Context, during string, err error) *failure {
	f := &failure{}
	switch {
	case late(ctx):
		f = unreachable("there was no complete answer in time", "check the server and the network, or allow more time")
		f.kinds = append(f.kinds, context.DeadlineExceeded)
	case ctx.Err() != nil:
		f = &failure{why: "stopped by the caller", kinds: []error{context.Canceled}}
	case !errors.As(err, &f):
		f = unreachable(oneLine(err.Error()), "see whether it lasts")
	}
	f.during = during
	return f
}

// late reports whether the time of a context is over. A connection that has the same deadline may
// notice a moment before the context does.
func late(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || ctx.Err() == nil && limited && !time.Now().Before(deadline)
}

// osReason is the reason of an error from the file system without its path,
// which the sentence around it has already named.
func osReason(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// urlParts finds the two places of a URL which carry secrets: user information
// and query.
var urlParts = regexp.MustCompile(`(https?://)([^\s/@"]*@)?([^\s?"]*)(\?[^\s"]*)?`)

// scrub makes the text of a foreign error fit to be shown: without the given
// secrets, without those in URLs, and on one short line.
func scrub(text string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return oneLine(urlParts.ReplaceAllString(text, "$1$3"))
}

// disguises are the forms in which a password may come back in an error.
func disguises(user, password string) []string {
	return []string{
		password,
		url.PathEscape(password),
		url.QueryEscape(password),
		base64.StdEncoding.EncodeToString([]byte(user + ":" + password)),
	}
}

// oneLine makes foreign text fit for a line of a log or a terminal: short, and without
// what moves a cursor, has a color, or changes the direction of what follows.
func oneLine(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
