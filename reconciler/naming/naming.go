// Package naming has the names and labels of what quorate makes for a cluster, which
// other packages, other versions of quorate and other operators read. None of them
// may change: a live cluster carries them.
package naming

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// Member is the name of the member with that ordinal, and of its pod.
func Member(cluster string, ordinal int32) string {
	return cluster + "-" + strconv.FormatInt(int64(ordinal), 10)
}

// NoOrdinal is the ordinal of a name that has none: beyond every size.
const NoOrdinal = math.MaxInt32 - 1

// Ordinal is the number at the end of a member's name, NoOrdinal without one.
func Ordinal(member string) int32 {
	n, err := strconv.ParseInt(member[strings.LastIndex(member, "-")+1:], 10, 32)
	if err != nil {
		return NoOrdinal
	}
	return int32(n)
}

// IsMember reports whether a member of the cluster may have that name.
func IsMember(cluster, name string) bool { return name == Member(cluster, Ordinal(name)) }

// CompareMembers orders members by their ordinals as numbers: 9 before 10.
func CompareMembers(a, b string) int {
	return cmp.Or(cmp.Compare(Ordinal(a), Ordinal(b)), strings.Compare(a, b))
}

// ClaimPrefix begins the name of every member's volume claim, with a dash: a
// StatefulSet names a claim after its template and the pod. Only a cluster that was
// restored in place of a deleted one has another.
const ClaimPrefix = "data"

// Claim is the name of a member's volume claim. An empty prefix is ClaimPrefix.
func Claim(prefix, member string) string { return cmp.Or(prefix, ClaimPrefix) + "-" + member }

// MemberOfClaim is the member whose claim has that name, "" where it is no member's.
func MemberOfClaim(cluster, claim, prefix string) string {
	member, found := strings.CutPrefix(claim, cmp.Or(prefix, ClaimPrefix)+"-")
	if !found || !IsMember(cluster, member) {
		return ""
	}
	return member
}

// Record is the ConfigMap that holds the record of a cluster.
func Record(cluster string) string { return cluster + "-record" }

// HeadlessService is the Service that gives each member its DNS name.
func HeadlessService(cluster string) string { return cluster + "-peers" }

// ClientService is the Service that clients of the cluster use.
func ClientService(cluster string) string { return cluster + "-client" }
