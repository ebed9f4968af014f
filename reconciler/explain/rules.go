package explain

// steps is why a rule that only ever takes a step is named by no hold.
const steps = "It takes a step, or waits for the end of one, and refuses nothing."

// rules are the rules of the planner, in the order in which they are asked.
func rules() []Entry {
	list := []Entry{
		{
			Name:  "readable",
			Means: "The file of this cluster has errors. The cluster is left as it is; the others are reconciled.",
			Why:   "What cannot be read cannot be what is wanted.",
			Do:    []string{"quorate validate PATH names file, line and column, and what to write instead. Fix it in a new commit."},
		},
		{
			Name:  "ownership",
			Means: "An object that quorate would make is there already and is not quorate's, or a volume claim is there and no record says whose data it has.",
			Why:   "It may belong to another operator or be the only copy of its data: quorate never changes or deletes what it did not make.",
			Do:    []string{"Rename the cluster, or remove the object if nobody needs it.", "A cluster that exists already is brought in by a restore of a backup: see the pages on migration."},
		},
		{
			Name:  "owner",
			Means: "The record of the cluster names another owner: another repository, branch or path, or another instance of quorate.",
			Why:   "Two that act on one cluster undo each other, and two restarts at once cost the quorum.",
			Do:    []string{"Remove the file here.", "Or let go of the cluster there with mode: Observe, and write here the spec.takeOver that the hold gives. It works once."},
		},
		{
			Name:  "record",
			Means: "The cluster is there, and its record (the ConfigMap NAME-record) is gone or cannot be read.",
			Why:   "The record says which members there are, whose data each volume holds and what is half done. To guess that is how data is lost.",
			Do:    []string{"Restore the ConfigMap from a backup of the Kubernetes API. The members serve meanwhile."},
		},
		{
			Name:  "restore",
			Means: "An EtcdRestore is not carried out: what it would make is there already, the backup is unfit, is not named clearly or is not signed by a key that is trusted, or the restore is complete and its file has changed since.",
			Why:   "A restore makes a new cluster, once, and touches nothing that exists: repeated, it would throw away what was written since.",
			Do: []string{
				"Give the new cluster another name with spec.clusterName, or commit the old one with state: Deleted first.",
				"Name the backup by its objectURL where several can be meant; quorate snapshot list shows what there are.",
				"Where its manifest is not signed, or by another key, and you know where it is from, commit what the hold prints; docs/signing.md says what that trusts.",
				"Once it is complete, replace the EtcdRestore by an EtcdCluster of the same name and spec, and change that.",
			},
		},
		{
			Name:  "deletion",
			Means: "A cluster whose file says state: Deleted is being deleted, or is not deleted yet because the backup before it cannot be taken, a volume is not known to be a member's, or the restore that takes its place is refused.",
			Why:   "A deletion has no way back but the backup before it.",
			Do:    []string{"Do what the hold says about the backup, the claim or the restore.", "Set spec.deletion.backup to Skip to go without a backup: the way on where there is no quorum that could give one.", "To keep the cluster, take state: Deleted out of the file."},
		},
		{
			Name:  "immutable",
			Means: "A field has changed that cannot change on a live cluster.",
			Why:   "Kubernetes or etcd refuses it, or the members would have to stop together.",
			Do:    []string{"Revert that field; or go the way that the hold names for it, which for some fields is a new cluster from a backup.", "Storage of a new cluster may change as long as no volume exists behind its claims: it begins anew by itself."},
		},
		{
			Name:  "certificates",
			Means: "A certificate or a key is missing, damaged, expired or does not name the members.",
			Why:   "A member that restarts with it could not come back to the others.",
			Do:    []string{"Replace the Secrets that the hold names. With tls.mode: Managed quorate issues them: deleted ones come back."},
		},
		{
			Name:  "bootstrap",
			Means: "The cluster is being formed for the first time, and its members have not all joined yet; or its first release is refused.",
			Why:   "Until every member has said its ID once, nobody knows which ones are the cluster.",
			Do: []string{
				"kubectl describe pod of the member that the message names: an image that cannot be pulled, a volume that is not bound, a node without room.",
				"A cluster that never held data can be started over, as the hold says. Where its pods are ready it has formed, and quorate cannot reach it: see reachable.",
			},
		},
		{
			Name:  "drift",
			Means: "Objects of the cluster are not what Git says and are put back; or the StatefulSet is gone and cannot come back as it was.",
			Why:   "Members must come back as what they were: with another file, another release or without their volumes they would not be the same cluster.",
			Do:    []string{"Revert the file to what was applied last, or name a release that the members run.", "Bring missing volumes back, or restore a backup into a new cluster."},
		},
		{
			Name:  "times",
			Means: "A time in an object of the cluster, or in its record, lies ahead of quorate's clock by more than a minute, and since when quorate sees it is being noted.",
			Why:   "The clock of the machine that wrote it is wrong, or that of quorate's node. A repair, a join or a recovery that waits since then would wait until that time has come.",
			Do:    []string{"Set the clocks (NTP) of the nodes and of the API server; the warning of the cluster names the object."},
		},
		{
			Name:  "recovering",
			Means: "A recovery or a restore has begun and is brought to its end: the first member is made, starts and is checked before the others join.",
			Why:   "Half of a recovery is no cluster. The old data stays beside the new until it is over.",
			Do:    []string{"The hold names the Job, the claim or the member that it waits for, and what to do where that failed.", "Where the quorum comes back before a volume was restored, the recovery is given up, and noted as refused: take it out of the file."},
		},
		{
			Name:  "enlarge",
			Means: "A volume should be larger and cannot grow.",
			Why:   "The StorageClass does not allow it, and nothing is restarted for it.",
			Do:    []string{"Set spec.storage.size back, allow volume expansion in the StorageClass, or change the class with spec.storage.classChange: Replace."},
		},
		{
			Name:  "hibernated",
			Means: "The cluster sleeps: no member runs, and each volume is kept. It waits for its pods to stop, or for them to come back.",
			Why:   "All members stop together and start together, as what they were.",
			Do:    []string{"Set spec.state to Running to wake it."},
		},
		{
			Name:  "resize",
			Means: "The StatefulSet was scaled to 0 by another writer while a rollout to another version of etcd was under way.",
			Why:   "With no pods Kubernetes calls the rollout complete: all members would start at once with a release that may not read what they have written, or that would skip a minor. None is there to tell how far the rollout came.",
			Do: []string{
				"Set spec.version back to what the hold names: the members come back as what they were before.",
				"Where you know that each of them ran the newer release, or the minor below it: scale the StatefulSet back with the command in the hold.",
			},
		},
		{
			Name:  "remedy",
			Means: "No quorum of members runs, and the data of a quorum is whole on its volumes: they need too much memory, lack an image or a node, are refused by Kubernetes, or do not start with their settings.",
			Why:   "With nothing that serves there is nothing to lose by a restart: a commit of settings goes to the members that are down, one after the other, until there is a quorum. Another version waits for that, and no member that may serve is stopped.",
			Do: []string{
				"Commit what lets them start: spec.podTemplate (resources, node selector, tolerations, priority class), spec.image, spec.etcd; or revert the commit that broke them.",
				"Where a node does not report, bring it back first: whether etcd still runs there is unknown.",
				"Neither delete volume claims nor write spec.recovery: both give up data that is there.",
			},
		},
		{
			Name:  "settled",
			Means: "The StatefulSet controller has not caught up with the last change, or replaces a pod.",
			Why:   "What quorate sees of the pods is not yet the effect of its last step.",
			Do: []string{
				"Where it lasts, the hold names what blocks the pod: check the node, the volume, and that kube-controller-manager runs.",
				"A pod on a node that does not report is never taken for stopped: bring the node back; only where it is certainly off, delete the pod by force, or taint the node out-of-service. On a node that still runs, a second etcd would start beside the first.",
			},
		},
		{
			Name:  "reachable",
			Means: "No member answers quorate, and enough of them are ready for a quorum: the cluster serves, and only quorate does not see it. A spec.recovery is refused, and noted as refused.",
			Why:   "The readiness probe of each pod reads through a quorum every second, and the kubelet asks it from the node: that is evidence of life, and silence is none of death. The word of a node that does not report is not counted.",
			Do: []string{
				"kubectl get networkpolicy -A: let quorate's namespace in to port 2379. Exempt that port from a mesh's mutual TLS. With authentication on in etcd, quorate comes in as user root, by the common name of its certificate, or without TLS by a password: see docs/users.md.",
				"From a laptop, quorate plan needs a route to the pods' addresses: run it in the cluster where there is none.",
				"Take spec.recovery out of the file, if it is there. What was refused is not carried out when the quorum is lost one day.",
			},
		},
		{
			Name:  "recovery",
			Means: "The cluster has lost its quorum: too few members are left to agree on anything. The hold lists what is left of each. Or a recovery was asked for and is refused.",
			Why:   "Whatever goes on from less than a quorum may lose what was acknowledged. So quorate never does it by itself.",
			Do: []string{
				"First bring members back: their nodes, their volumes, their pods. With a quorum, nothing is lost.",
				"Only where that cannot be, write the spec.recovery that the hold gives: from a member that is left, or from a backup. It works once, and keeps the old data.",
				"Where the quorum is there again, take spec.recovery out of the file.",
			},
		},
		{
			Name:  "trusted",
			Means: "With tls.mode: Secrets, members that run do not trust a certificate in one of the Secrets: its authority was changed, and they read whom they trust only when they start.",
			Why:   "Members take up a new certificate within about two minutes, and those that do not trust it refuse its connections.",
			Do: []string{
				"Put the certificate from before back into the Secret.",
				"Then let ca.crt have both authorities, wait until quorate has restarted the members, and only then issue certificates by the new one: docs/certificates.md.",
				"If the members have lost each other already, and their pods mount no NAME-trust-… Secret, delete all their pods at once: they start with what the Secrets have now.",
			},
		},
		{
			Name:  "holdings",
			Means: "Whose data a volume holds is noted on its claim. A volume that is not known to be a member's is never deleted.",
			Why:   "It may be the only copy.",
			Do:    []string{"Look at what the claim has; delete it by hand if its data is not needed."},
		},
		{
			Name:  "noauth",
			Means: "A rollout between 3.4 and 3.5, or a new member on a release with a known fault, is due, and authentication is on in etcd, or nobody knows whether it is.",
			Why:   "Members of 3.4 read a password that a member of 3.5 has written as an empty one, and a new member of such a release may hold other data than the rest. etcd supports neither.",
			Do: []string{
				"Commit spec.auth.enabled: false, in the same change if you like: authentication is switched off first, and users and roles stay. Commit true again afterwards. Meanwhile all who have a client certificate may read and write everything.",
				"Where a person switched it on, etcdctl auth disable does the same.",
				"Where the hold names a release that fixes the fault, go there first.",
			},
		},
		{
			Name:  "membership",
			Means: "A member joins or leaves, and that has not ended yet; or the members that answer are not those of the record.",
			Why:   "One change of the members at a time: two could cost the quorum.",
			Do: []string{
				"Check the pod and the node of the member that the message names. A join that fails is tried again, later each time.",
				"etcdctl member list shows what the members themselves say; remove a learner there that nobody wants.",
			},
		},
		{
			Name:  "repair",
			Means: "A member is lost for good, or seems so, and is not replaced yet: it may come back, a backup comes first, more than one is lost, it is not known whether it serves, or spec.repair.mode is Never.",
			Why:   "A member that is replaced has lost its data, or has forgotten what it had promised, because its volume was put back to an older snapshot. One that answers, or that the leader hears, is not lost, whatever Kubernetes says of its node. That two are lost at once has mostly one cause, which replacing them would hide.",
			Do: []string{
				"Bring its node or its volume back, if you can.",
				"Set spec.repair.mode to Automatic, or to OneByOne where several are lost.",
			},
		},
		{
			Name:  "alarms",
			Means: "etcd has raised an alarm. Under NOSPACE it takes no writes until there is space; under CORRUPT it refuses to serve, because the members' data differs.",
			Why:   "Space is freed only in a cluster that is healthy otherwise, and never by deleting keys. Which data is right, quorate must be able to prove.",
			Do: []string{
				"NOSPACE: raise spec.etcd.quotaBackendBytes in a commit of its own, or delete keys; quorate compacts, defragments and ends the alarm.",
				"CORRUPT: compare the members with etcdctl endpoint hashkv --cluster, and delete the pod and the claim of the one that is wrong; or restore a backup into a new cluster.",
			},
		},
		{
			Name:  "clients",
			Means: "An application gets its certificate: it is new in spec.tls.clients, its certificate grows old, or its Secret was deleted or damaged.",
			Why:   steps,
		},
		{
			Name:  "copies",
			Means: "The Secret of an application in another namespace, one of namespaces in spec.tls.clients, is made what it is in the namespace of the cluster; or it is deleted, as the file no longer asks for it.",
			Why:   steps,
		},
		{
			Name:  "missing",
			Means: "The pod of a member does not exist: Kubernetes refuses it (a quota, Pod Security, a policy, a priority class that does not exist), and the hold has its words; or nobody creates it.",
			Why:   "A rollout stops there, as every other member that restarted now would be refused as well. What heals goes on meanwhile: it stands above.",
			Do: []string{
				"In a rollout, revert the commit: the pod comes back as it was.",
				"Or let Kubernetes admit it, or commit what it admits: kubectl describe statefulset shows each refusal.",
				"Where nothing is refused, check that kube-controller-manager runs.",
			},
		},
		{
			Name:  "path",
			Means: "A member cannot go from its release to the one in Git by hops that etcd supports; or the release is unknown or unsafe.",
			Why:   "etcd supports one minor at a time, each from a least patch on, and down only with its downgrade API. A member on another path may not start, or may lose data.",
			Do:    []string{"Set spec.version to a release that every member can go to; upgrade.path: Stepwise walks through the minors between."},
		},
		{
			Name:  "mend",
			Means: "A member that an abandoned roll broke gets back what it was before the cluster goes to an older minor.",
			Why:   "etcd does not go down while a member is away.",
			Do:    []string{"Where its pod cannot start with the old release either, the hold says why."},
		},
		{
			Name:  "member",
			Means: "The member that was restarted last is not back yet, or does not come back: then the roll has stopped at it.",
			Why:   "The next member is restarted only after this one is healthy, has caught up and has stayed so for a while.",
			Do: []string{
				"kubectl describe pod and kubectl logs of that member.", "Revert the commit to go back, or fix the cause in a new one.",
				"Where its pod does not stop, the hold names its node or its finalizers. Delete it by force only where its node is certainly off.",
			},
		},
		{
			Name:  "health",
			Means: "A member is not healthy, by its own words or by what its pod says; or the members' data differs.",
			Why:   "It is the gate: nothing below it stops a member while another one is not well.",
			Do: []string{
				"Check the member that the message names.", "The hold lists what else can be done, such as having it replaced.",
				"A downgrade that neither Git nor the record speaks of is a person's, or the record is older than it: let that person finish, end it with etcdctl downgrade cancel, or restore the record.",
			},
		},
		{
			Name:  "claims",
			Means: "The volume claim of a member is being deleted, is gone or has lost its volume. The member still serves, and its data goes when its pod stops. Nothing that stops a member is begun.",
			Why:   "Kubernetes takes no deletion of a claim back: it waits for the pod to stop, and then the volume goes. With the claims of several members one restart each would lose everything.",
			Do: []string{
				"Take a backup now, with an EtcdBackup.",
				"Replace the members one at a time: delete the pod of one, wait until a new member has taken its place and all are healthy, then the next.",
				"A cluster of one or two gets spec.replicas: 3 first, so that others have the data.",
				"Cordon no node and drain none meanwhile: an eviction stops a pod, too.",
			},
		},
		{
			Name:  "fight",
			Means: "Another writer changes back what quorate puts right, again and again; or the API server itself changes what quorate applies, or refuses it. quorate waits longer each time.",
			Why:   "Two writers that undo each other would restart or reconfigure the cluster for ever. Members that start with something else than Git says may lose data, and without its Services and its disruption budget a cluster is not safe to restart: while members restart, the budget keeps every pod, or a drained node takes a second one.",
			Do: []string{
				"Stop the manager that the hold names from changing that field, or write into the file what it wants.",
				"kubectl get mutatingadmissionpolicies,mutatingwebhookconfigurations shows what changes objects on their way; exempt the namespace, or the object. kubectl get validatingadmissionpolicies,validatingwebhookconfigurations, and kubectl describe resourcequota in the namespace, show what refuses them.",
				"Where something else has the name of an object, rename the cluster, or remove what is in the way.",
				"A policy that forbids budgets which keep every pod stops rollouts: exempt the budget of the cluster.",
			},
		},
		{
			Name:  "auth",
			Means: "Users, roles, permissions and authentication are changed to what spec.auth says, one after the other; or a restored cluster gets no clients yet, because what it says cannot be done.",
			Why:   "quorate gives itself its access first, then all that lets others in, and switches authentication on last: at no moment is quorate, or a user of the file, locked out by a change that is half done.",
			Do:    []string{"Do what the hold says about the Secret or the certificate. What is not listed in the file stays, unless spec.auth.prune is true."},
		},
		{
			Name:  "fleet",
			Means: "It is not this cluster's turn: as many others as --max-disrupted allows are being changed, or a lower upgrade.wave is not done.",
			Why:   "A bad change must not reach many clusters at once.",
			Do: []string{
				"Look at the clusters that the message names: one that is stopped keeps the others waiting.",
				"Raise --max-disrupted, or change the waves, if that is meant; or set spec.mode of that cluster to Observe, and nothing waits for it.",
				"One that is broken, and to which quorate does nothing, yields its place after an hour. A lower wave is never passed over.",
			},
		},
		{
			Name:  "window",
			Means: "The change restarts members, and the maintenance window is closed.",
			Why:   "Git says when members may restart.",
			Do:    []string{"Wait until it opens, as the message says; or change spec.maintenance in a commit."},
		},
		{
			Name:  "confirm",
			Means: "Before a member is touched, all are asked once more, with what they have applied.",
			Why:   "The health of a moment ago is no proof for the restart of the next.",
			Do:    []string{"Nothing, for some seconds. Where it lasts, the message names the member that lags."},
		},
		{
			Name:  "hibernate",
			Means: "The cluster is about to sleep: a backup comes first, then every member stops and keeps its volume.",
			Why:   "Members that sleep give no backup.",
			Do:    []string{"Give the backup a place, or set spec.upgrade.backup to Skip to go without."},
		},
		{
			Name:  "backup",
			Means: "A backup comes before this change, and cannot be taken: no place is set, no member can give one, or the store fails.",
			Why:   "The backup is the way back that does not depend on the members.",
			Do: []string{
				"Set spec.backup.destination.objectURLTemplate, or the daemon's --backup-url, which is BACKUP_URL of the ConfigMap quorate-settings with deploy/base.",
				"Set the field that the hold names, such as spec.upgrade.backup, to Skip to go without.",
				"Revert the commit to stay where the cluster is.",
			},
		},
		{
			Name:  "shrink",
			Means: "Members that Git no longer wants are removed, one at a time, the highest ordinal first.",
			Why:   "The quorum shrinks with the members: the others must be well before each removal.",
			Do:    []string{"Check the member that the message names."},
		},
		{
			Name:  "remove",
			Means: "The volumes of removed members are deleted, where Git says so, and their pods are not gone yet.",
			Why:   "A volume goes when no pod uses it.",
			Do:    []string{"Nothing, unless the pod does not stop: check its node."},
		},
		{
			Name:  "flush",
			Means: "Every member saves its state before the next minor, which could not read what its log may hold.",
			Why:   "3.7 panics on entries that a log of 3.5 may still have.",
			Do:    []string{"Nothing, for a moment. Where it lasts, check the log and the disk of the member that the message names."},
		},
		{
			Name:  "downgrade",
			Means: "etcd's downgrade API was called, and the members bring their storage down to the older minor before any starts it.",
			Why:   "The older release cannot read the newer storage.",
			Do: []string{
				"Nothing, for a moment. Where it lasts, something is in use that only the newer minor can do: check the log of the member that the message names.",
				"Revert the commit to cancel the downgrade, while a member still runs the newer minor.",
			},
		},
		{Name: "start", Means: "The StatefulSet gets the new template; no pod restarts for that yet.", Why: steps},
		{
			Name:  "surge",
			Means: "The only member is to be replaced by way of a second one (spec.upgrade.maxSurge), which could not join yet, or whose data is compared.",
			Why:   "The first one serves until the second one has a vote and everything that it has.",
			Do:    []string{"Where the second one could not join, its pod and its node say why; the first one is left alone meanwhile.", "Revert the commit where it cannot start with what Git asks for."},
		},
		{
			Name:  "soak",
			Means: "The member that was restarted last has been healthy for less than the soak time.",
			Why:   "Some faults take a minute to show.",
			Do:    []string{"Nothing; it ends by itself."},
		},
		{
			Name:  "leader",
			Means: "The leader restarts next, and its leadership cannot go to another member.",
			Why:   "A leader that just stops costs an election, in which clients wait.",
			Do:    []string{"Check the other members: one of them must be healthy and caught up."},
		},
		{
			Name:  "compare",
			Means: "Before the first member of a rollout restarts, the data of all members is compared, one member after the other. Each answers nobody else while its data is read.",
			Why:   "Where members hold different data, the one that stops may be the only one that is right. Later, etcd itself compares each member that starts with the others.",
			Do:    []string{"Nothing, for some seconds to minutes, by the size of the database. Where it lasts, the message names the member that could not be compared: check its disk."},
		},
		{
			Name:  "restart",
			Means: "A member would restart, and should not: its pod could not start, or it would come back with a release that the cluster cannot have.",
			Why:   "To restart a healthy member for a new pod that cannot start makes two that are away.",
			Do:    []string{"Fix what keeps the pod that the message names from starting: the image, the node, the volume."},
		},
		{
			Name:  "end",
			Means: "Every member runs what Git wants, and etcd or the StatefulSet controller finishes the roll within seconds.",
			Why:   "A roll is over when the cluster version is the new one.",
			Do:    []string{"Nothing; it ends by itself."},
		},
		{
			Name:  "volumes",
			Means: "Volumes grow, or are changed for others of another class by replacing members one at a time, and that is not over or cannot begin.",
			Why:   "A volume of another class is filled by the other members: one at a time, inside the maintenance window, and never for a single member.",
			Do:    []string{"Check the claim that the message names.", "For a cluster with one member, raise spec.replicas to 3 first."},
		},
		{
			Name:  "grow",
			Means: "Members that Git wants join, one at a time, as learners without a vote.",
			Why:   "A member that has not caught up must not count for the quorum.",
			Do:    []string{"Check the pod and the node of the member that the message names."},
		},
		{Name: "admit", Means: "Clients come to a restored cluster when all its members have joined.", Why: steps},
		{
			Name:  "defragment",
			Means: "A database should be defragmented, and is not: its release may lose data in it, or a member is not well.",
			Why:   "A member serves nothing while it is defragmented, and some releases have bugs in it.",
			Do:    []string{"Upgrade first. Under NOSPACE raise spec.etcd.quotaBackendBytes before that, in a commit of its own."},
		},
		{
			Name:  "users",
			Means: "A user cannot be what spec.auth says, because its password cannot be read; or authentication stays off, because quorate would not be let in, or the release has a fault.",
			Why:   "Authentication is switched on when every user is there and quorate's own access is proven: there is no way back for who is locked out.",
			Do: []string{
				"Create the Secret that the hold names, with the label quorate.dev/use: passwords, or correct spec.auth.",
				"With tls.mode: Secrets issue the client certificate for quorate with the common name root.",
				"Where the members do not answer about users, see what is wrong with them: quorate status.",
			},
		},
		{Name: "applied", Means: "What was applied is recorded: the commit that the cluster is now.", Why: steps},
		{
			Name:  "transport",
			Means: "spec.tls.mode changes between plain text and TLS. Members restart and listen to both; etcd's member list is told, member by member, where each is reached; then clients have time to move, and members restart and listen to one of the two alone.",
			Why:   "At each moment each member must reach all others, and the clients must reach them all. This hold is nearly last, so it keeps little else waiting.",
			Do: []string{
				"Nothing, until the time that the hold names: move the clients meanwhile, with the certificates of spec.tls.clients, or away from them. spec.tls.overlap sets the time.",
				"To go back, put the mode from before, at any time: members move back the same way.",
			},
		},
		{
			Name:  "issuer",
			Means: "spec.tls.mode changes between Managed and Secrets: members trust both issuers, then show certificates of the other one, and then trust that one alone. Now clients have time to take up the last of that, or a certificate of the issuer that Git asks for is not good.",
			Why:   "At each moment each member must trust what all others and the clients show. Some clients read what they trust only when they start. This hold is nearly last, so it keeps little else waiting.",
			Do: []string{
				"Until the time that the hold names, have applications trust both issuers, which are in the Secret NAME-trust-… that the members mount, and then show certificates of the new one. spec.tls.overlap sets the time.",
				"Replace the Secret that the hold names.",
				"To go back, set the mode back.",
			},
		},
		{
			Name:  "rotation",
			Means: "The authorities of a cluster change: members trust both, all certificates are issued by the next ones, and members trust those alone. Now clients have time to take up the last of that, or a member has not shown in a handshake that it did.",
			Why:   "At each moment each member must trust what all others and the clients show. Some clients read what they trust only when they start. This hold is nearly last, so it keeps little else waiting.",
			Do: []string{
				"Nothing, until the time that the hold names: restart meanwhile what reads its certificates only then. spec.tls.overlap sets the time.",
				"After that, let quorate reach the ports 2379 and 2380 of the members, and read the logs of the member that the hold names.",
				"To go back, put the word of spec.tls.rotate from before, until members begin to trust the next authorities alone.",
			},
		},
		{
			Name:  "bundle",
			Means: "With tls.mode: Secrets, the ca.crt of a Secret has changed. Members read it only when they start, so they restart, one at a time, when what the Secrets have has reached every pod.",
			Why:   "A member that still shows the certificate from before must be trusted by those that have restarted. What members trust is kept in the Secrets NAME-trust-…, by its content.",
			Do:    []string{"Nothing; it ends by itself three minutes after the last change of the Secrets."},
		},
		{
			Name:  "expiry",
			Means: "A certificate that quorate cannot renew ends within weeks: one of tls.mode: Secrets, or an authority whose change does not come about. Or the Secret of an application in spec.tls.clients exists and is somebody else's.",
			Why:   "When it has ended, no member that restarts comes back. Quorate writes no Secret that it has not made. This hold is last, so it keeps nothing else waiting.",
			Do: []string{
				"Replace the Secret that the hold names, before the day that it names; for an authority of quorate's, find out what holds its change.",
				"An application's: delete or rename the Secret, or give the application another one with secretName.",
			},
		},
		{
			Name:  "observe",
			Means: "The file says mode: Observe: quorate reports the step that it would take, and takes none.",
			Why:   "Git says so.",
			Do:    []string{"Set spec.mode to Enforce to let quorate act."},
		},
	}
	for i := range list {
		list[i].Topic = Rule
	}
	return list
}
