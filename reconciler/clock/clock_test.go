package clock_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/clock"
	"github.com/quorate/quorate/reconciler/state"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// 313: a time of another machine is believed as far as clocks differ.
func TestHowOldATimeOfAnotherMachineIs(t *testing.T) {
	year := 365 * 24 * time.Hour
	for _, c := range []struct {
		name  string
		noted time.Time
		age   time.Duration
		known bool
		left  time.Duration // of a wait of 5 minutes
	}{
		{"never", time.Time{}, 0, false, 5 * time.Minute},
		{"a year ago", noon.Add(-year), year, true, 0},
		{"a minute ago", noon.Add(-time.Minute), time.Minute, true, 4 * time.Minute},
		{"now", noon, 0, true, 5 * time.Minute},
		{"a little ahead, as clocks are", noon.Add(clock.Tolerance), 0, true, 5 * time.Minute},
		{"ahead", noon.Add(clock.Tolerance + 1), 0, false, 5 * time.Minute},
		{"years ahead", noon.Add(10 * year), 0, false, 5 * time.Minute},
	} {
		age, known := clock.Age(c.noted, noon)
		if left := clock.Left(5*time.Minute, c.noted, noon); age != c.age || known != c.known || left != c.left {
			t.Errorf("%s: age %s %v, %s left; want %s %v, %s", c.name, age, known, left, c.age, c.known, c.left)
		}
		if ahead := clock.Ahead(c.noted, noon); ahead != (!c.known && !c.noted.IsZero()) {
			t.Errorf("%s: ahead is %v", c.name, ahead)
		}
	}
}

// planned are the times of what is observed that are meant to lie ahead, or that this
// process has measured itself.
var planned = []string{
	".Record.Seen.Stamp", ".Record.Seen.At", ".Certificates.Ends", ".Certificates.Notice", ".Certificates.Copies.Refused.Since", ".Certificates.Copies.Refused.Until", ".Certificates.Rotation.Made", ".Certificates.Rotation.Ends",
	".Objects.Fight.Until", ".Objects.Refused.Since", ".Objects.Refused.Until", ".Leftovers.Fight.Until", ".Leftovers.Refused.Since", ".Leftovers.Refused.Until",
	".Rounds.At", ".Auth.At",
}

// 313: every time that the planner sees is one of which it is said what becomes of it when
// it lies ahead of the clock. A new one is noticed here.
func TestEveryTimeThatIsObservedIsSettled(t *testing.T) {
	future := noon.Add(24 * time.Hour)
	var o state.Observed
	var all []string
	fill(reflect.ValueOf(&o).Elem(), "", future, &all)
	if len(all) < 15 {
		t.Fatalf("only %q are found", all)
	}
	before := times(o, future)
	settled, ahead := clock.Settle(o, noon)
	left := times(settled, future)
	if !reflect.DeepEqual(left, planned) {
		t.Errorf("these still lie ahead: %q, want %q", left, planned)
	}
	if len(ahead) != len(all)-len(planned) {
		t.Errorf("%d of %d are told to lie ahead: %v", len(ahead), len(all)-len(planned), ahead)
	}
	if !reflect.DeepEqual(times(o, future), before) {
		t.Error("what was observed is changed in its place")
	}
	if same, none := clock.Settle(o, future); none != nil || !reflect.DeepEqual(same, o) {
		t.Error("what does not lie ahead is changed")
	}
}

// times are the paths of the times in o that are at.
func times(o state.Observed, at time.Time) []string {
	var found []string
	walk(reflect.ValueOf(o), "", func(path string, t time.Time) {
		if t.Equal(at) {
			found = append(found, path)
		}
	})
	return found
}

func walk(v reflect.Value, path string, each func(string, time.Time)) {
	if t, is := v.Interface().(time.Time); is {
		each(path, t)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), path, each)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			walk(v.Field(i), path+"."+v.Type().Field(i).Name, each)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), path, each)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			walk(v.MapIndex(key), path, each)
		}
	}
}

// fill makes one of everything, and sets every time.
func fill(v reflect.Value, path string, at time.Time, all *[]string) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(at))
		*all = append(*all, path)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), path, at, all)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), path+"."+v.Type().Field(i).Name, at, all)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), path, at, all)
	case reflect.Map:
		e := reflect.New(v.Type().Elem()).Elem()
		fill(e, path, at, all)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.Zero(v.Type().Key()), e)
	}
}

// 313: a wait that began ahead of the clock begins when quorate saw it, by a note that
// can itself be believed; what vouches for something is of unknown age.
func TestWhatATimeAheadCountsAs(t *testing.T) {
	stamp := noon.AddDate(10, 0, 0)
	const what = "pod orders-1 (damaged since)"
	note := func(what string, stamp, at time.Time) []state.Seen {
		return []state.Seen{{What: "pod orders-0 (created)", Stamp: noon, At: noon}, {What: what, Stamp: stamp, At: at}}
	}
	for _, c := range []struct {
		name  string
		noted []state.Seen
		want  time.Time
		known bool
	}{
		{"not noted yet", nil, noon, false},
		{"noted", note(what, stamp, noon.Add(-time.Minute)), noon.Add(-time.Minute), true},
		{"another time since", note(what, stamp.Add(-1), noon.Add(-time.Minute)), noon, false},
		{"another object's", note("pod orders-2 (damaged since)", stamp, noon.Add(-time.Minute)), noon, false},
		{"noted by a clock that was ahead itself", note(what, stamp, noon.AddDate(1, 0, 0)), noon, false},
	} {
		o := state.Observed{
			Pods:   []state.Pod{{Name: "orders-1", DamageSince: stamp}},
			Record: &state.Record{Seen: c.noted, Backup: &state.Backup{Time: stamp}, RollBackup: &state.Backup{Time: stamp}},
		}
		got, ahead := clock.Settle(o, noon)
		if since := got.Pods[0].DamageSince; !since.Equal(c.want) || !got.Record.Backup.Time.IsZero() || !got.Record.RollBackup.Time.IsZero() {
			t.Errorf("%s: since %s, and the backup of %s", c.name, since, got.Record.Backup.Time)
		}
		if len(ahead) != 3 || ahead[0].What != what || !ahead[0].At.Equal(stamp) || ahead[0].Noted != c.known || !ahead[1].Noted {
			t.Errorf("%s: %+v", c.name, ahead)
		}
	}
}

// 313: a person reads which object has the time, and what to set.
func TestATimeAheadIsTold(t *testing.T) {
	if text := clock.Warning(nil); text != "" {
		t.Error(text)
	}
	_, ahead := clock.Settle(state.Observed{Pods: []state.Pod{{Name: "orders-1", Created: noon.Add(time.Hour), NodeGoneSince: noon.Add(2 * time.Hour)}}}, noon)
	text := clock.Warning(ahead)
	const want = "ahead of quorate's clock is the time of the node of pod orders-1 (gone since), 2026-03-01T14:00:00Z, and 1 more: set the clock of"
	if !strings.HasPrefix(text, want) {
		t.Error(text)
	}
}
