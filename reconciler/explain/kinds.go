package explain

// kinds are the kinds of holds.
func kinds() []Entry {
	return []Entry{
		{
			Name: "Waiting", Topic: Kind,
			Means: "Something that was started, or that others have to finish, is not over yet. The hold ends on its own; one that lasts longer than it should becomes Unhealthy.",
			Why:   "The next step builds on the end of this one: quorate takes one step at a time, and looks at its effect before it takes another.",
			Do:    []string{"Nothing, as long as it moves. Where the hold says what to do, it has lasted longer than it should: that is the thing to check."},
		},
		{
			Name: "Confirm", Topic: Kind,
			Means: "The members are asked once more, before a step that one of them would not survive, some of them with hashes of their data. It takes seconds, and minutes where a large database is compared.",
			Why:   "One answer may be a lucky one. A member is touched only after every member has answered well twice in a row and has caught up.",
			Do:    []string{"Nothing. If it stays, the message names the member that does not catch up or whose data differs: check its log and its disk."},
		},
		{
			Name: "Unhealthy", Topic: Kind,
			Means: "A member, a certificate or a volume is not well, and nothing is done to the cluster before that has ended. It ends as soon as it is well again.",
			Why:   "To restart, remove or upgrade a member while another is unwell may cost the quorum.",
			Do:    []string{"Check what the message names: kubectl describe pod, kubectl logs.", "The hold says what else can be done, in which order."},
		},
		{
			Name: "Unreachable", Topic: Kind,
			Means: "quorate cannot ask the members, and they serve: enough pods are ready for a quorum, by a probe that reads through one. Nothing is done to the cluster until they answer.",
			Why:   "Silence towards quorate is no proof that a member is down. A recovery or a deletion would stop members that serve.",
			Do: []string{
				"Find out what is between quorate and port 2379 of the pods: a NetworkPolicy, a service mesh with mutual TLS of its own, authentication in etcd that does not let it in as user root, certificates, or a missing route.",
				"Neither delete nor recover anything. spec.recovery is refused meanwhile.",
			},
		},
		{
			Name: "Stopped", Topic: Kind,
			Means: "A change stopped half way, because the member that it has just touched does not come back, or came back as something else. The other members are left alone.",
			Why:   "What one member does not survive, the next one would not survive either. While the others are left alone, the cluster serves.",
			Do:    []string{"Revert the commit, and the member goes back to what it was; or fix the cause in a new commit.", "kubectl logs of the member that the message names says why it does not come back."},
		},
		{
			Name: "Refused", Topic: Kind,
			Means: "What Git asks for is not safe, or cannot be done as it is written. Nothing of the cluster is changed. It ends with a new commit, or when the obstacle is gone.",
			Why:   "No path from what is there to what is asked for keeps every acknowledged write and the quorum.",
			Do:    []string{"Change the file as the hold says, or remove the object that it names.", "quorate plan --offline --base REF shows the same before a commit is merged."},
		},
		{
			Name: "Observe", Topic: Kind,
			Means: "The file says mode: Observe: quorate plans and reports what it would do, and touches nothing.",
			Why:   "Git says so.",
			Do:    []string{"Set spec.mode to Enforce to let quorate act."},
		},
	}
}
