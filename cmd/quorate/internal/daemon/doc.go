// Package daemon is what quorate run is: the lease, the listeners, and the wiring of
// what follows Git, what reconciles and what publishes. Here belongs what one process
// has once. Flags and their checks are in package main, and each part that runs has a
// separate package.
package daemon
