// Package contain keeps a bug that one object brings out from ending the daemon for all
// others: a panic becomes an error of what was being done, and everything else goes on.
package contain

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/sourcegraph/conc/panics"
)

// Panic is the error of what panicked.
type Panic struct {
	// Value is what it panicked with.
	Value any
	// Where is the function of quorate and its line.
	Where string
}

func (p *Panic) Error() string {
	return fmt.Sprintf("internal error of quorate (%v, in %s): please report it; what it was about is left as it is, and tried again", p.Value, p.Where)
}

// Panicked reports whether an error is that of what panicked.
func Panicked(err error) bool {
	var p *Panic
	return errors.As(err, &p)
}

// Run calls f, and returns its error, or a *Panic where it panics. What f has locked stays
// locked unless it unlocks in a defer.
func Run(f func() error) (err error) {
	if r := panics.Try(func() { err = f() }); r != nil {
		r = innermost(r)
		return &Panic{Value: r.Value, Where: where(r.Callers)}
	}
	return err
}

// innermost is the panic of a goroutine that was handed on to the one that waited for it.
func innermost(r *panics.Recovered) *panics.Recovered {
	for {
		inner, ok := r.Value.(*panics.Recovered)
		if !ok {
			return r
		}
		r = inner
	}
}

// module is what the functions of quorate's own begin with.
const module = "github.com/quorate/quorate/"

// where names the innermost function of quorate's own among the callers.
func where(callers []uintptr) string {
	frames := runtime.CallersFrames(callers)
	for {
		frame, more := frames.Next()
		if name, own := strings.CutPrefix(frame.Function, module); own && !strings.HasPrefix(name, "reconciler/contain.") {
			return fmt.Sprintf("%s, line %d", name, frame.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}
