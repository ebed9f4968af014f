// Package release compares the catalogue schema/release with real etcd binaries
// of five minors, which the sandbox builds: the flags and feature gates that
// their help names, the defaults that it prints, and whether a member starts
// with every flag that the catalogue renders.
//
// It needs neither root nor Kubernetes, only Go and what the module proxy
// serves. Run it with `make release-check`.
package release
