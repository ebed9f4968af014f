package contain_test

import (
	"errors"
	"regexp"
	"testing"

	"github.com/sourcegraph/conc"

	"github.com/quorate/quorate/reconciler/contain"
)

// outOfRange panics as the runtime does.
func outOfRange(list []int) { list[len(list)]++ }

// 427: a panic becomes an error that names its place, also one of another goroutine that
// is waited for.
func TestAPanicBecomesAnError(t *testing.T) {
	plain := errors.New("away")
	for name, c := range map[string]struct {
		f    func() error
		want string // a regular expression; "" for no error
	}{
		"none":     {func() error { return nil }, "^$"},
		"an error": {func() error { return plain }, "^away$"},
		"a panic": {
			func() error { outOfRange(nil); return nil },
			`^internal error of quorate \(runtime error: index out of range \[0\] with length 0, in reconciler/contain_test\.outOfRange, line \d+\): please report it`,
		},
		"a panic of another goroutine": {
			func() error {
				var group conc.WaitGroup
				group.Go(func() { outOfRange(nil) })
				group.Wait()
				return nil
			}, `^internal error of quorate \(runtime error: index out of range \[0\] with length 0, in reconciler/contain_test\.outOfRange, line \d+\)`,
		},
	} {
		err := contain.Run(c.f)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if !regexp.MustCompile(c.want).MatchString(text) {
			t.Errorf("%s: %q", name, text)
		}
	}
}
