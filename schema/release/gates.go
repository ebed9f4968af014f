package release

import "fmt"

// Stage is how far a feature gate has come.
type Stage string

// The stages, as etcd writes them. etcd has no stable gate so far.
const (
	Alpha Stage = "ALPHA"
	Beta  Stage = "BETA"
)

// Gate is a feature gate of one release.
type Gate struct {
	Name  string
	Stage Stage
	// Default reports whether the feature is on when it is not set.
	Default bool
}

// Gates are the feature gates of v, sorted by name: none before 3.6.
func Gates(v Version) []Gate {
	var gates []Gate
	for _, row := range gateRows() {
		if KnownFlag(v, featureGatesFlag) && !v.before(row.since) {
			gates = append(gates, row.Gate)
		}
	}
	return gates
}

// CheckGate is nil when the feature of that name can be switched in v, by a gate
// or by the flag that it was before 3.6. The error tells what to do.
func CheckGate(v Version, name string) error {
	_, _, err := spellGate(v, name)
	return err
}

// spellGate is the name that v has for a feature gate, and whether it is a gate
// there; before 3.6 each gate was a flag of its own.
func spellGate(v Version, gate string) (name string, isGate bool, err error) {
	row, ok := gateNamed(gate)
	switch {
	case !ok:
		return "", false, fmt.Errorf("etcd has no feature gate %s%s", quoted(gate), didYouMean(gate, gateNames()))
	case !KnownFlag(v, featureGatesFlag) && KnownFlag(v, row.flag):
		return row.flag, false, nil
	case Known(v) != nil:
		return "", false, Known(v)
	case v.before(row.since):
		return "", false, fmt.Errorf("%s does not have the feature gate %s, which came with %s: leave it out until then", v, gate, row.since.Line())
	}
	return gate, true, nil
}

// gateNames are the names of all feature gates, sorted.
func gateNames() []string {
	var names []string
	for _, row := range gateRows() {
		names = append(names, row.Name)
	}
	return names
}

// gateNamed finds a gate by its name.
func gateNamed(gate string) (gateRow, bool) {
	for _, row := range gateRows() {
		if row.Name == gate {
			return row, true
		}
	}
	return gateRow{}, false
}

// gateOfFlag finds the gate that a flag became.
func gateOfFlag(flag string) (gateRow, bool) {
	for _, row := range gateRows() {
		if row.flag == flag && flag != "" {
			return row, true
		}
	}
	return gateRow{}, false
}
