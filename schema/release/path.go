package release

import (
	"errors"
	"fmt"
	"strings"
)

// Path lists the releases to go through from one release to another, to itself
// last, and nothing when they are the same. It goes one minor at a time. It stops
// at another patch of a minor where etcd demands that, and not where one is only
// advised: each stop is a rollout of every member. The error tells what to do where
// there is no way.
//
//	3.5.20 → 3.5.35   3.5.35
//	3.5.12 → 3.6.16   3.5.35, 3.6.16
//	3.5.30 → 3.6.16   3.6.16, although 3.5.32 is advised
//	3.4.34 → 3.6.16   3.5.35, 3.6.16
//	3.5.33 → 3.7.3    3.6.16, 3.7.3
//	3.7.3  → 3.6.16   3.6.16, by etcd's downgrade API
//	3.7.1  → 3.6.16   3.7.3, 3.6.16: 3.7.1 cannot be downgraded safely
func Path(from, to Version) ([]Version, error) {
	if from == to {
		return nil, nil
	}
	for _, v := range []Version{from, to} {
		if err := Known(v); err != nil {
			return nil, err
		}
	}
	if err := mustBeGood(to); err != nil {
		return nil, err
	}
	switch {
	case from.sameLine(to):
		return []Version{to}, nil
	case to.before(from):
		return pathDown(from, to)
	default:
		return pathUp(from, to)
	}
}

// mustBeGood refuses a stop that no cluster should be brought to.
func mustBeGood(v Version) error {
	for _, finding := range Bad(v) {
		if finding.Severity == Refuse {
			return errors.New(finding.Message)
		}
	}
	return nil
}

// pathUp goes up minor by minor. The last releases of the lines in between are
// fit as a start and good as a target: the tests of the tables see to it.
func pathUp(from, to Version) ([]Version, error) {
	var stops []Version
	for at := from; !at.sameLine(to); {
		up, known := next(at)
		row, ok := hopTo(up)
		if !known || !ok {
			return nil, fmt.Errorf("%s → %s: this version of quorate does not support the step from %s: update quorate first", from, to, at.Line())
		}
		if last, _ := Latest(at.Line()); at.before(row.floor) {
			stops = append(stops, last)
		}
		at = up
		if up.sameLine(to) {
			at = to
		}
		stops = append(stops, at)
	}
	return stops, nil
}

// pathDown takes the one way down that etcd has: to the minor below, where the
// newer one has a downgrade API.
func pathDown(from, to Version) ([]Version, error) {
	row, ok := hopTo(from)
	switch {
	case !ok || row.back == Version{}:
		return nil, fmt.Errorf("%s → %s: etcd %s has no downgrade: restore a backup from before the upgrade into a new cluster", from, to, from.Line())
	case from.Minor > to.Minor+1:
		return nil, fmt.Errorf("%s → %s: etcd downgrades one minor at a time: go to a release of %d.%d first", from, to, from.Major, from.Minor-1)
	case from.before(row.back):
		last, _ := Latest(from.Line())
		return []Version{last, to}, nil
	}
	return []Version{to}, nil
}

// list writes versions as "3.4.45, 3.5.35 and 3.6.16".
func list(versions []Version) string {
	var b strings.Builder
	for i, v := range versions {
		switch {
		case i == 0:
		case i == len(versions)-1:
			b.WriteString(" and ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(v.String())
	}
	return b.String()
}
