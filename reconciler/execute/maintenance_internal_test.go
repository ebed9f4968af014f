package execute

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/state"
)

// FullAsTold makes every member full of old revisions, until what was called has
// changed that.
func FullAsTold(r *state.Round, calls []string, quota int64) {
	called := func(prefix string) bool {
		return slices.ContainsFunc(calls, func(call string) bool { return strings.HasPrefix(call, prefix) })
	}
	for i := range r.Members {
		m := &r.Members[i]
		m.DBSize, m.DBInUse, m.Quota = quota, quota, quota
		if called("defragment " + m.Name) {
			m.DBSize, m.DBInUse = quota/10, quota/10
		}
	}
	if !called("disarm") {
		r.Alarms = []state.Alarm{{Kind: state.NoSpace, MemberID: "a1"}}
	}
}
