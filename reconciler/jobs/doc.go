// Package jobs is about the Jobs that quorate starts: those that take a backup, restore
// one, and restore one as a drill. It renders them, has what their pods run, and judges
// how they ended. When one is due, its callers decide.
package jobs
