// Package release knows what each etcd release needs: which flags it takes,
// from which version it may be upgraded, which releases are bad, and which
// health paths it serves.
//
// It is data and pure functions: no clock, no file, no network, no state. A
// rule is a row in a table, and every row cites where it comes from. Facts that
// were measured on real servers rather than read in etcd's documents say so.
//
//	Parse, Compare    a version as a value
//	Known, EndOfLife  is this minor one that quorate understands, and etcd maintains
//	Bad               what is wrong with a release, as a target
//	Hop               what lies between a member's version and the target
//	Path              the releases to go through from one to another
//	DefaultsChanged   what an upgrade changes although no setting did
//	Flags             settings → command line, in the names that a version knows
//	Deprecated        which of them etcd removes, and what to write instead
//	Gates, CheckGate  the feature gates of a version
//	Probes            health paths of a version
//
// The tables are in files of their own: lines.go, bad.go, hopdata.go,
// flagdata.go, deprecateddata.go, gatedata.go and defaults.go. The tests in
// test/release compare them with real binaries of five minors.
//
// To take up a new minor, add its row to each table, oldest first, and its
// binary to the sandbox; the tests tell which row is missing. A release newer
// than the catalogue is taken when its line is known, and refused when it is
// not: which flags it has is unknown.
package release
