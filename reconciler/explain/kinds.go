package explain

// kinds are the kinds of holds.
func kinds() []Entry {
	return []Entry{
		{
			Name: "Waiting", Topic: Kind,
			Means: "Something that was started, by quorate or by another controller, is not complete yet. The hold ends on its own; one that lasts longer than it should becomes Unhealthy.",
			Why:   "The next step depends on this one: quorate takes one step at a time, and checks its effect before it takes the next.",
			Do:    []string{"Nothing, as long as it makes progress. Where the hold says what to do, it has lasted longer than it should: check that."},
		},
		{
			Name: "Confirm", Topic: Kind,
			Means: "The health of the members is checked once more before a step that stops one of them; for some steps their data is compared, too. It takes seconds, or minutes where a large database is compared.",
			Why:   "One health check may succeed by chance. A member is stopped only after every member has passed two consecutive health checks and has caught up.",
			Do:    []string{"Nothing. If it lasts, the message names the member that does not catch up or whose data differs: check its log and its disk."},
		},
		{
			Name: "Unhealthy", Topic: Kind,
			Means: "A member, a certificate or a volume is not healthy, and the cluster is not changed until it is. The hold ends as soon as it is healthy again.",
			Why:   "Restarting, removing or upgrading a member while another one is unhealthy may cost the quorum.",
			Do:    []string{"Check what the message names: kubectl describe pod, kubectl logs.", "The hold says what else you can do, in order."},
		},
		{
			Name: "Unreachable", Topic: Kind,
			Means: "quorate cannot reach the members, and they serve: enough pods are ready for a quorum, by a probe that reads through a quorum. The cluster is not changed until they answer.",
			Why:   "That quorate gets no answer is no proof that a member is down. A recovery or a deletion would stop members that serve.",
			Do: []string{
				"Find out what blocks quorate from port 2379 of the pods: a NetworkPolicy, a service mesh with mutual TLS of its own, authentication in etcd that rejects it as user root, certificates, or a missing route.",
				"Neither delete nor recover anything. spec.recovery is refused meanwhile.",
			},
		},
		{
			Name: "Stopped", Topic: Kind,
			Means: "A rollout stopped half way, because the member that it restarted last does not come back, or came back with something else than asked for. The other members are left alone.",
			Why:   "The next member would fail in the same way. As long as the others are left alone, the cluster serves.",
			Do:    []string{"Revert the commit, and the member is rolled back; or fix the cause in a new commit.", "kubectl logs of the member that the message names says why it does not come back."},
		},
		{
			Name: "Refused", Topic: Kind,
			Means: "What Git asks for is not safe, or is not possible as written. The cluster is not changed. The hold ends with a new commit, or when the obstacle is removed.",
			Why:   "There is no way to get there that keeps the quorum and every acknowledged write.",
			Do:    []string{"Change the file as the hold says, or remove the object that it names.", "quorate plan --offline --base REF shows this before a commit is merged."},
		},
		{
			Name: "Observe", Topic: Kind,
			Means: "The file says mode: Observe: quorate plans and reports what it would do, and changes nothing.",
			Why:   "spec.mode says so.",
			Do:    []string{"Set spec.mode to Enforce to let quorate act."},
		},
	}
}
