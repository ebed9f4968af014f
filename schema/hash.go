package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// SpecHash is a short stable hash of a defaulted spec: 12 hexadecimal digits.
// Comments, field order and ways to write one quantity do not change it, nor
// does a new optional field that a spec does not use. It is "" only for a spec
// that has no JSON, which no file can bring about.
func SpecHash(spec ClusterSpec) string { return hashOf(spec) }

// hashOf hashes the JSON of a spec: Go writes struct fields in their order and
// map keys sorted.
func hashOf(spec any) string {
	data, err := json.Marshal(spec)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	const digits = 12
	return hex.EncodeToString(sum[:])[:digits]
}

// Digest identifies all that the parts say, by their JSON: 16 hexadecimal digits. It is for parts that were
// read from a document, which have JSON.
func Digest(parts ...any) string {
	h := sha256.New()
	for _, part := range parts {
		_ = json.NewEncoder(h).Encode(part) // a hash takes what it is given
	}
	const bytes = 8
	return hex.EncodeToString(h.Sum(nil)[:bytes])
}

// BackupHash is SpecHash for an EtcdBackup: the name and this identify the backup.
func BackupHash(spec BackupRequest) string { return hashOf(spec) }

// ScheduleHash is SpecHash for an EtcdBackupSchedule.
func ScheduleHash(spec BackupScheduleSpec) string { return hashOf(spec) }

// RestoreHash identifies the spec of a restore: what is done once is done once for
// its name and this.
func RestoreHash(spec RestoreSpec) string { return hashOf(spec) }

// SourceHash identifies the backup that a restore names. What is accepted of it makes
// it no other one.
func SourceHash(source RestoreSource) string {
	return hashOf(source.withoutAccepted())
}
