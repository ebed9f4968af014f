package explain

// reasons are the reasons of conditions that want a person and that no rule gives.
func reasons() []Entry {
	return []Entry{
		{
			Name: "Failed", Topic: Reason,
			Means: "The last passes over the object ended with the error that the message has. They are tried again, later each time, at most five minutes apart.",
			Why:   "An error of the API server, of a member or of a store says nothing about what is there: quorate does not act on what it cannot see.",
			Do: []string{
				"Fix what the error names; the next try follows by itself, and at once with a commit that changes the file.", "kubectl logs of quorate has every new error once.",
				"Where it is the backup before a repair or another step that fails, the message names the setting that lets it go on without, such as spec.upgrade.backup: Skip.",
			},
		},
		{
			Name: "Orphaned", Topic: Reason,
			Means: "No readable file names this cluster any more. It is left running, and is no longer reconciled, repaired or backed up.",
			Why:   "Absence is never a request to delete: a file may be gone by mistake.",
			Do:    []string{"Bring its file back.", "To delete the cluster, bring the file back with state: Deleted."},
		},
		{
			Name: "Held", Topic: Reason,
			Means: "The newest commit has errors about this backup or schedule. What was last said well goes on.",
			Why:   "A mistake in a file must not end the backups.",
			Do:    []string{"quorate validate names the line; fix it in a new commit."},
		},
		{
			Name: "BackupFailed", Topic: Reason,
			Means: "The last try to take the backup failed. It is tried again, later each time.",
			Why:   "A backup counts only after what is stored was read back.",
			Do:    []string{"Check the store that the message names, its credentials and its space, and the member that gives the snapshot."},
		},
		{
			Name: "Overdue", Topic: Reason,
			Means: "A time of the schedule, its jitter and its starting deadline have passed without a good backup.",
			Why:   "Who restores today gets what the last good backup has, and that is older than the schedule promises.",
			Do:    []string{"kubectl logs of quorate says what the backup waits for, or why it fails: a member that is fit to give it, its turn by --max-backups, the store."},
		},
		{
			Name: "DrillFailed", Topic: Reason,
			Means: "A backup was restored on trial and is not what was taken, or the trial came to no judgement. The backup is kept, and one that is bad is chosen for no restore.",
			Why:   "A backup that was never restored is a hope.",
			Do: []string{
				"Where the message says what is wrong with the backup, take another one now with an EtcdBackup.",
				"Where the cause was outside of it, spec.verify.again of the schedule has it restored once more.",
			},
		},
		{
			Name: "RetentionHeld", Topic: Reason,
			Means: "The rules of retention would remove more than half of a schedule's backups at once. None is removed.",
			Why:   "That is more often a mistake in the rules, or a clock that jumped, than what somebody wants.",
			Do:    []string{"Look at what the message would remove; any change of spec.retention is the word that the rules are meant."},
		},
		{
			Name: "BackupUnreachable", Topic: Reason,
			Means: "The backup is good, and no restore could read it from where it is: the store gives out no signed URL, or the files are on a volume that no other pod has.",
			Why:   "A restore runs in a pod of its own, which does not have the daemon's access.",
			Do:    []string{"Set podAccess of the destination: claimName for files on a volume, serviceAccountName for an identity of the pod."},
		},
	}
}
