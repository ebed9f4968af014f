// Package report tells people what is known and what is done: log lines, Events,
// metrics, and the status of each object. It says each thing once, and writes nothing
// that decides anything.
package report
