package explain

// exits are the exit codes of quorate-guard, which runs in each member's pod before etcd.
func exits() []Entry {
	list := []Entry{
		{
			Name:  "exit-1",
			Means: "The guard could not decide: it could not read the state ConfigMap that the pod mounts, or the volume.",
			Why:   "A volume that cannot be read must not be taken for an empty one.",
			Do: []string{
				"If the message is about the record, restore the ConfigMap NAME-record from a backup of the Kubernetes API. The kubelet starts the guard again on its own.",
				"If it is about the volume, check the node and the storage: kubectl describe pod, kubectl get pvc.",
			},
		},
		{
			Name:  "exit-3",
			Means: "The volume is empty, or its data was wiped, and this member had joined the cluster.",
			Why:   "A member that forgot its log may have voted for what it no longer knows. Under its former ID it could make acknowledged writes disappear, so it only comes back as a new member.",
			Do: []string{
				"If the data still exists on another volume, put that volume back.",
				"Otherwise wait: quorate replaces the member by a new one as spec.repair says, when the other members are healthy. quorate explain repair says what it waits for.",
			},
		},
		{
			Name:  "exit-4",
			Means: "The data on the volume belongs to another member or another cluster, or is not etcd's.",
			Why:   "It may be the only copy of that data. quorate neither starts etcd on it nor deletes it.",
			Do: []string{
				"Put back the volume that belongs to this member: the message says whose data was found.",
				"If that data is not needed, or its PersistentVolume has the reclaim policy Retain, delete the claim and the pod of the member, and quorate replaces it. A cluster of one member is restored from a backup instead.",
			},
		},
		{
			Name:  "exit-5",
			Means: "The data of this member is damaged: its write-ahead log, or the file that marks its volume, cannot be read.",
			Why:   "etcd would start with a part of what it had acknowledged, or not at all.",
			Do: []string{
				"Check the disk and the node: other volumes there may be damaged, too.",
				"Then wait: quorate replaces the member as spec.repair says, when the other members are healthy.",
			},
		},
		{
			Name:  "exit-6",
			Means: "The state ConfigMap does not list this member, or not yet; or the cluster is being recovered or restored.",
			Why:   "A member that the others do not know would form a cluster of its own, or stop the recovery.",
			Do: []string{
				"Nothing at first: quorate adds the member, or completes the recovery, and the kubelet starts the guard again.",
				"If it lasts, quorate status NAMESPACE/NAME says what the cluster waits for.",
			},
		},
		{
			Name:  "exit-7",
			Means: "The volume holds what an earlier member of this name left behind in this cluster.",
			Why:   "That member was removed. With its data and its former ID the new one could not join.",
			Do:    []string{"Wait: quorate replaces it by a member with a new volume, as spec.repair says. quorate explain repair says what that waits for."},
		},
		{
			Name:  "exit-8",
			Means: "The data is this member's own, but older than what it had written: an older snapshot of the volume was put back.",
			Why:   "The writes that are missing were acknowledged, with this member's vote. A quorum with it could lose them.",
			Do: []string{
				"Put back the newer volume, if it exists.",
				"Otherwise wait: quorate replaces the member as spec.repair says, when the other members are healthy.",
				"Never put back single volumes from snapshots: restore a backup with an EtcdRestore.",
			},
		},
	}
	for i := range list {
		list[i].Topic = Exit
	}
	return list
}
