// Package schedule decides when backups of a schedule are due and which of them
// are kept. It is pure: whatever it decides from is an argument, the time included.
package schedule
