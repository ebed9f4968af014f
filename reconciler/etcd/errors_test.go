package etcd

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/reconciler/state"
)

// 91: the alarms among a member's errors are known by their kind.
func TestErrorsThatAMemberReports(t *testing.T) {
	got := errorsOf([]string{"memberID:1 alarm:NOSPACE ", "etcdserver: no leader", "memberID:1 alarm:CORRUPT "})
	want := []state.MemberError{{Text: "memberID:1 alarm:NOSPACE ", Alarm: state.NoSpace}, {Text: "etcdserver: no leader"}, {Text: "memberID:1 alarm:CORRUPT ", Alarm: state.Corrupt}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
