package explain

// reasons are the reasons of conditions that need a person and that no rule gives.
func reasons() []Entry {
	return []Entry{
		{
			Name: "Failed", Topic: Reason,
			Means: "Reconciling the object failed with the error in the message. It is retried, less often each time, at most five minutes apart.",
			Why:   "An error of the API server, of a member or of a store says nothing about the state of the cluster: quorate does not act on what it cannot see.",
			Do: []string{
				"Fix what the error names; quorate retries on its own, and at once after a commit that changes the file.", "kubectl logs of quorate has every new error once.",
				"Where it is the backup before a repair or another step that fails, the message names the setting that does without, such as spec.upgrade.backup: Skip.",
			},
		},
		{
			Name: "Repeated", Topic: Reason,
			Means: "quorate has taken the step in the message five times or more, and it is due each time: something undoes it, or it has no effect. It is taken again, less often each time, at most five minutes apart.",
			Why:   "To take it at once each time would be a fight with another writer, which neither of the two wins, or a loop, at the cost of the API server and of clients.",
			Do: []string{
				"Where it changes an object, find what undoes it: its metadata.managedFields say who wrote it last, the audit log of the API server who deleted it.",
				"Where it asks etcd for something, look at the log of the member that it names.",
				"Stop what undoes it, or change the file so that quorate does not want it; a commit that changes the file has it tried at once.",
			},
		},
		{
			Name: "Orphaned", Topic: Reason,
			Means: "No readable file declares this cluster any more. It keeps running, and is no longer reconciled, repaired or backed up.",
			Why:   "Deleting a file never deletes a cluster: the file may be missing by mistake.",
			Do:    []string{"Restore its file.", "To delete the cluster, restore the file with state: Deleted."},
		},
		{
			Name: "Held", Topic: Reason,
			Means: "The newest commit has errors about this backup or schedule. The last valid version stays in force.",
			Why:   "A mistake in a file must not stop backups.",
			Do:    []string{"quorate validate names the line; fix it in a new commit."},
		},
		{
			Name: "BackupFailed", Topic: Reason,
			Means: "The last attempt to take the backup failed. It is retried, less often each time.",
			Why:   "A backup counts only after it was read back from the object store.",
			Do:    []string{"Check the object store that the message names, its credentials and its free space, and the member that gives the snapshot."},
		},
		{
			Name: "Overdue", Topic: Reason,
			Means: "A time of the schedule, its jitter and its starting deadline have passed without a good backup.",
			Why:   "A restore today would get the last good backup, which is older than the schedule promises.",
			Do:    []string{"kubectl logs of quorate says what the backup waits for, or why it fails: a healthy member, its turn by --max-backups, the object store."},
		},
		{
			Name: "DrillFailed", Topic: Reason,
			Means: "A restore drill found that a backup is not what was taken, or the drill had no result. The backup is kept, and a bad one is never chosen for a restore.",
			Why:   "Only a restore proves that a backup can be restored.",
			Do: []string{
				"Where the message says what is wrong with the backup, take another one now with an EtcdBackup.",
				"Where the cause was something else, spec.verify.again of the schedule repeats the drill.",
			},
		},
		{
			Name: "RetentionHeld", Topic: Reason,
			Means: "Retention would delete more than half of a schedule's backups at once. None is deleted.",
			Why:   "That is more often a mistake in spec.retention, or a clock that jumped, than intended.",
			Do:    []string{"Check what the message lists; any change of spec.retention confirms it."},
		},
		{
			Name: "BackupUnreachable", Topic: Reason,
			Means: "The backup is good, but a restore could not read it: the object store issues no signed URL, or the files are on a volume that no other pod mounts.",
			Why:   "A restore runs in a pod of its own, which does not have the daemon's access.",
			Do:    []string{"Set podAccess of the destination: claimName for files on a volume, serviceAccountName for an identity of the pod."},
		},
	}
}
