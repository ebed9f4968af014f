// Package release knows what each etcd release needs: which flags it takes,
// from which version it may be upgraded, which releases are bad, and which
// health paths it serves.
//
// It is data and pure functions: no clock, no file, no network, no state. A
// rule is a row in a table, and every row cites where it comes from. Facts that
// were measured on real servers rather than read in etcd's documents say so.
//
//	Parse, Compare   a version as a value
//	Known            is this minor one that quorate understands
//	Bad              what is wrong with a release, as a target
//	Hop              what stands between a member's version and the target
//	Flags            settings → command line, in the names that a version knows
//	Probes           health paths of a version
package release
