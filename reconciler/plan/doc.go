// Package plan decides. It is pure: from what Git wants (Desired), what the
// cluster is (Observed) and the time, Make says what to do next and why.
//
// # Contract
//
//   - Make reads no clock, makes no call and keeps nothing. The same input gives
//     the same Plan, so `quorate plan`, the status and the daemon cannot differ.
//   - A Plan has a Hold, or Steps, or neither (nothing to do). Only Steps[0] may
//     be carried out, and only when there is no Hold. The steps behind it are a
//     forecast: what Make would say if each step went well.
//   - After one step the caller observes again and asks again. Nothing is
//     remembered between two calls, so a crash at any point loses nothing.
//   - Unknown is never good news: what could not be observed holds.
//
// The order of the rules is the safety policy, and stands in one table: see
// rules.go.
//
// # Words
//
//	member     one etcd process, named like its pod (orders-2)
//	ordinal    the pod's number in its StatefulSet
//	template   the hash of a rendered pod template; a pod carries the hash of
//	           the template that it was made from
//	roll       replacing pods, one by one, until all carry the desired template
//	partition  the StatefulSet's cursor of a roll: only pods with an ordinal at
//	           or above it may take the new template
//	round      one look at every member's health
package plan
