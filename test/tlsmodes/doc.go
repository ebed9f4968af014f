// Package tlsmodes holds the protocol by which a running cluster changes between plain text and
// TLS, which the planner rests on and the documentation of etcd does not give. Its steps are a
// table, and real etcd members of each minor carry them out under load, on loopback.
//
// A run without -all tries a few of the cases, always the same:
//
//	go test ./test/tlsmodes -args -all
package tlsmodes
