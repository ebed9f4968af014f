package score

import (
	"fmt"
	"slices"
)

// Run is how a run ended.
type Run struct {
	// End is the world at its end, as lines, and Wrong what must not have been on the way.
	End, Wrong []string
	// Restarts is how often each member was started.
	Restarts map[string]int
	// Hit reports whether the request to disturb came.
	Hit bool
	// Unrest is why the end is not what Git says, "" where it is, and WayOn says that this names
	// what a person must do.
	Unrest string
	WayOn  bool
}

// Problems are what is wrong with how a run ended, beside the undisturbed one. A request that
// never comes is none: what is said about a cluster may come a round later, and so once less.
func (r Run) Problems(undisturbed Run) (problems []string) {
	problems = append(problems, r.Wrong...)
	if d := Differ(undisturbed.End, r.End); d != "" {
		problems = append(problems, "it ends another way than undisturbed (-) does:\n"+d)
	}
	for _, member := range r.restartedMore(undisturbed) {
		problems = append(problems, fmt.Sprintf("%s was started %d times, undisturbed %d", member, r.Restarts[member], undisturbed.Restarts[member]))
	}
	if r.Unrest != "" {
		problems = append(problems, "it ends with "+r.Unrest)
	}
	return problems
}

// Beside is how a run counts beside the undisturbed one. One that broke something on its way has
// failed, whatever its hold says.
func (r Run) Beside(undisturbed Run) End {
	same := r.Unrest == "" && Differ(undisturbed.End, r.End) == ""
	switch {
	case len(r.Wrong) > 0 || len(r.restartedMore(undisturbed)) > 0 || !same && !r.WayOn:
		return Failed
	case !same:
		return Held
	case !r.Hit:
		return Unmet
	}
	return Same
}

// restartedMore are the members that were started more often than undisturbed.
func (r Run) restartedMore(undisturbed Run) (members []string) {
	for member, n := range r.Restarts {
		if n > undisturbed.Restarts[member] {
			members = append(members, member)
		}
	}
	slices.Sort(members)
	return members
}
