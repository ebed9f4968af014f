package release

import "fmt"

// What goes wrong only while authentication is on.
const (
	authJoin  = "may diverge when a member is added while auth is enabled"
	authStart = "panics at start when auth is enabled"
)

// HopWithAuth tells why members must not go from one release to another while authentication
// is on, in half a sentence; "" where they may.
//
// 3.5 writes users and passwords into its log in another form than 3.4: in a cluster of both,
// a member of 3.4 reads a new password as an empty one (upgrade guide 3.5, PR 11943).
func HopWithAuth(from, to Version) string {
	hashed := Version{3, 5, 0}
	if from.before(hashed) != to.before(hashed) {
		return "etcd supports no rollout between 3.4 and 3.5 while authentication is on, because their logs have users in two forms"
	}
	if from != to {
		return withAuth(to, authStart)
	}
	return ""
}

// JoinWithAuth tells why no member may join a cluster of a release while authentication is
// on, in half a sentence; "" where one may.
func JoinWithAuth(v Version) string { return withAuth(v, authJoin) }

// EnableAuth tells why authentication must not be switched on in a cluster of a release, in
// half a sentence; "" where it may be.
func EnableAuth(v Version) string { return withAuth(v, authStart) }

// withAuth tells of one fault of a release, and where it is fixed.
func withAuth(v Version, fault string) string {
	for _, row := range badRows() {
		if row.fault == fault && row.from.sameLine(v) && !v.before(row.from) && v.before(row.fixed) {
			return fmt.Sprintf("etcd %s %s, which %s fixes", v, fault, row.fixed)
		}
	}
	return ""
}
