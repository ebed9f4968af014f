// Package stores reaches backups with the credentials of a cluster's or a file's
// Secret: it opens their store, finds the one that a restore asks for, makes a place for
// the next one, and offers one to a pod that has no credentials.
//
// What a backup is, and how it is read and written, is the business of package backup.
package stores
