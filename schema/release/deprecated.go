package release

import (
	"fmt"
	"slices"
)

// Deprecated says why a flag should not be used any longer in v: etcd has
// removed it, deprecates it, or removes it in the next minor. It is false when
// there is no reason. Where Flags knows the flag by a newer name, it still
// renders that.
func Deprecated(v Version, flag string) (message string, deprecated bool) {
	row, ok := deprecationOf(flag)
	following := Version{v.Major, v.Minor + 1, 0}
	switch {
	case !ok:
		return "", false
	case !v.before(row.removed):
		return fmt.Sprintf("etcd %s removed %s: %s", row.removed.Line(), flag, instead(flag)), true
	case !v.before(row.deprecated):
		return fmt.Sprintf("%s is deprecated, and etcd %s removes it: %s", flag, row.removed.Line(), instead(flag)), true
	case !following.before(row.removed):
		return fmt.Sprintf("etcd %s removes %s: %s", row.removed.Line(), flag, instead(flag)), true
	}
	return "", false
}

// deprecationOf finds the row of a flag.
func deprecationOf(flag string) (deprecatedRow, bool) {
	for _, row := range deprecatedRows() {
		if slices.Contains(row.names, flag) {
			return row, true
		}
	}
	return deprecatedRow{}, false
}

// instead tells what to write for a flag that is deprecated or removed.
func instead(flag string) string {
	if row, ok := deprecationOf(flag); ok && row.instead != "" {
		return row.instead
	}
	if row, ok := gateOfFlag(flag); ok {
		return fmt.Sprintf("write %s: %s=true", featureGatesFlag, row.Name)
	}
	if short := newestName(flag); short != flag {
		return "write " + short
	}
	return "leave it out"
}
