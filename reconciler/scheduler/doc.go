// Package scheduler does what EtcdBackups and EtcdBackupSchedules ask for: it takes a
// backup when one is due, restores one as a drill, and removes those that no retention
// rule keeps. What is under way stands in a record of each, so that a process that is
// killed at any point finds it again. When something is due, package schedule says.
package scheduler
