package situation

import "github.com/quorate/quorate/reconciler/state"

// Remark is a sentence about a cluster, or a clause of one: a problem, a reason or a
// warning. What stays the same from pass to pass is apart from what does not. The
// zero Remark is none.
type Remark struct {
	// Member that it is about; "" for none.
	Member string
	// Text is what is so.
	Text string
	// Detail is what this pass has measured: numbers, an error's words, times that
	// move.
	Detail string
}

// None reports whether there is nothing to say.
func (r Remark) None() bool { return r.Text == "" }

// String is all of it.
func (r Remark) String() string { return state.WithDetail(r.Text, r.Detail) }
