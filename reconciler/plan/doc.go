// Package plan decides. It is pure: from what Git wants (Desired), what the
// cluster is (Observed) and the time, Make returns what to do next and why.
//
// # Contract
//
//   - Make reads no clock, makes no call and keeps nothing. The same input gives
//     the same Plan, so `quorate plan`, the status and the daemon cannot differ.
//   - A Plan has a Hold, or Steps, or neither (nothing to do). Only Steps[0] may
//     be executed, and only when there is no Hold. The steps behind it are a
//     forecast: what Make would say if each step went well.
//   - After one step the caller observes again and asks again. Nothing is
//     remembered between two calls, so a crash at any point loses nothing.
//   - Unknown is never good news: what could not be observed holds.
//
// The order of the rules is the safety policy, and is in one table: see
// rules.go.
//
// # Invariants
//
// The mistakes that must be impossible, by the numbers that rules and tests
// refer to. Those marked – concern what quorate does not do yet.
//
//	I1   a step never leaves fewer healthy voters than a quorum
//	I2   one action a cluster; nothing else is down, terminating or joining
//	I3   an uncached read and the object's UID just before each destructive call, and the IDs of the member that answers
//	I4   "new" as initial state only while no cluster ID is recorded
//	I5   an old identity only on its own volume, never on an empty, an older or a foreign one
//	I6   no volume goes before its member, and none by cascade
//	I7   what exists and is not quorate's is never taken over
//	I8   a restore never moves revisions back
//	I9   a backup counts after its bytes were read back from the store
//	I10  retention never takes the newest or the only good backup                –
//	I11  no upgrade without a verified backup of this cluster for this target
//	I12  absence (of a file, a branch, a record) is never an intent
//	I13  nothing that was to happen once happens again
//	I14  every hop of every reported version is one that etcd supports
//	I15  healthy is what members report of themselves, by ID, twice in a row
//	I16  no next step before everybody has caught up
//	I17  nothing is killed because the cluster is down
//	I18  no automatic restore and no forced new cluster
//	I19  a learner never counts for a quorum
//	I20  the right member: ordinals are numbers, the leader has moved before
//	I21  one process a volume
//	I22  certificates never change under members that run
//	I23  defragmentation one at a time, and never on an unsafe release
//	I24  after an ambiguous answer check, and never repeat blindly
//	I25  no side effects: nothing restarts that the plan does not say
//	I26  no member stops outside a maintenance window, except to be repaired or deleted
//	I27  one daemon that follows one place in Git acts on a cluster
//	I28  no more clusters are disrupted at once than were allowed, wave by wave
//	I29  quorate never locks itself out of etcd
package plan
