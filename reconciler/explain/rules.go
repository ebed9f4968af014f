package explain

// steps is why a rule that only ever takes a step is named by no hold.
const steps = "It takes a step, or waits for one to end, and refuses nothing."

// rules are the rules of the planner, in the order in which they are asked.
func rules() []Entry {
	list := []Entry{
		{
			Name:  "readable",
			Means: "The file of this cluster has errors. The cluster is left as it is; the others are reconciled.",
			Why:   "A file that cannot be read says nothing reliable about the desired state.",
			Do:    []string{"quorate validate PATH names file, line and column, and what to write instead. Fix it in a new commit."},
		},
		{
			Name:  "ownership",
			Means: "An object that quorate would create exists already and is not managed by quorate, or a volume claim exists and no state ConfigMap says whose data it holds.",
			Why:   "It may belong to another operator or be the only copy of its data: quorate never changes or deletes what it did not create.",
			Do:    []string{"Rename the cluster, or delete the object if it is not needed.", "To bring in an etcd cluster that exists already, restore a backup of it: see the pages on migration."},
		},
		{
			Name:  "owner",
			Means: "The state ConfigMap of the cluster (NAME-record) names another owner: another repository, branch or path, or another instance of quorate.",
			Why:   "Two instances that act on one cluster undo each other's changes, and two restarts at once can cost the quorum.",
			Do:    []string{"Remove the file here.", "Or release the cluster there with mode: Observe, and write here the spec.takeOver that the hold gives. It works once."},
		},
		{
			Name:  "record",
			Means: "The cluster exists, and its state ConfigMap (NAME-record) is missing or cannot be read.",
			Why:   "The state ConfigMap says which members there are, whose data each volume holds and what is half done. Guessing that could lose data.",
			Do:    []string{"Restore the ConfigMap from a backup of the Kubernetes API. The members keep serving."},
		},
		{
			Name:  "restore",
			Means: "An EtcdRestore is not applied: what it would create exists already, the backup is unusable, is not named unambiguously or is not signed by a trusted key, or the restore is complete and its file has changed since.",
			Why:   "A restore creates a new cluster, once, and changes nothing that exists: repeated, it would discard what was written since.",
			Do: []string{
				"Give the new cluster another name with spec.clusterName, or commit the old one with state: Deleted first.",
				"Name the backup by its objectURL where several match; quorate snapshot list shows them.",
				"Where its manifest is not signed, or by another key, and you know where it is from, commit what the hold prints; docs/signing.md says what that trusts.",
				"Once it is complete, replace the EtcdRestore by an EtcdCluster of the same name and spec, and change that.",
			},
		},
		{
			Name:  "deletion",
			Means: "A cluster whose file says state: Deleted is being deleted, or is not deleted yet because the backup before it cannot be taken, a volume is not known to be a member's, or the restore that takes its place is refused.",
			Why:   "The backup before a deletion is the only way back from it.",
			Do:    []string{"Do what the hold says about the backup, the claim or the restore.", "Set spec.deletion.backup to Skip to delete without a backup: the way forward where no quorum can give one.", "To keep the cluster, take state: Deleted out of the file."},
		},
		{
			Name:  "immutable",
			Means: "A field was changed that cannot change on a live cluster.",
			Why:   "Kubernetes or etcd refuses it, or the members would have to stop together.",
			Do:    []string{"Revert that field; or do what the hold says for it, which for some fields is a new cluster from a backup."},
		},
		{
			Name:  "certificates",
			Means: "A certificate or a key is missing, damaged, expired or does not name the members.",
			Why:   "A member that restarts with it could not rejoin the others.",
			Do:    []string{"Replace the Secrets that the hold names. With tls.mode: Managed quorate issues them: deleted ones are issued again, as long as their authority is there or no member serves."},
		},
		{
			Name:  "bootstrap",
			Means: "The cluster is being formed for the first time, and its members have not all joined yet; or its first release is refused.",
			Why:   "Until every member has reported its ID once, it is not certain which members form the cluster.",
			Do: []string{
				"kubectl describe pod of the member that the message names: an image that cannot be pulled, a volume that is not bound, a node without room.",
				"A cluster that never held data can be started over, as the hold says. Where its pods are ready it has formed, and quorate cannot reach it: see the rule reachable.",
			},
		},
		{
			Name:  "drift",
			Means: "Objects of the cluster differ from Git and are reverted; or the StatefulSet is missing and cannot be recreated as it was.",
			Why:   "Members must restart as what they were: with another file, another release or without their volumes they would not be the same cluster.",
			Do:    []string{"Revert the file to what was applied last, or name a release that the members run.", "Bring missing volumes back, or restore a backup into a new cluster."},
		},
		{
			Name:  "times",
			Means: "A time in an object of the cluster, or in its state ConfigMap, lies more than a minute ahead of quorate's clock. quorate notes when it saw that first.",
			Why:   "The clock of the machine that wrote it is wrong, or that of quorate's node. A repair, a join or a recovery that counts from that time would wait until it has come.",
			Do:    []string{"Set the clocks (NTP) of the nodes and of the API server; the warning of the cluster names the object."},
		},
		{
			Name:  "recovering",
			Means: "A recovery or a restore has begun and is being completed: the first member is created, starts and is checked before the others join.",
			Why:   "A cluster that is half recovered does not serve. The old data is kept next to the new until the recovery is complete.",
			Do:    []string{"The hold names the Job, the claim or the member that it waits for, and what to do where that failed.", "Where the quorum returns before a volume was restored, the recovery is cancelled, and recorded as refused: remove it from the file."},
		},
		{
			Name:  "enlarge",
			Means: "A volume should be larger and cannot grow.",
			Why:   "The StorageClass does not allow volume expansion. No member is restarted for it.",
			Do:    []string{"Set spec.storage.size back, allow volume expansion in the StorageClass, or change the class with spec.storage.classChange: Replace."},
		},
		{
			Name:  "hibernated",
			Means: "The cluster is hibernated: no member runs, and each volume is kept. quorate waits for its pods to stop, or to start again.",
			Why:   "All members stop together and start together, with the release and settings that they had.",
			Do:    []string{"Set spec.state to Running to wake it."},
		},
		{
			Name:  "resize",
			Means: "The StatefulSet was scaled to 0 by another writer while a rollout to another version of etcd was under way.",
			Why:   "With no pods Kubernetes calls the rollout complete: all members would start at once with a release that may not read what they have written, or that would skip a minor. No pod is left that shows how far the rollout came.",
			Do: []string{
				"Set spec.version back to what the hold names: the members start as what they were before.",
				"Where you know that each of them ran the newer release, or the minor below it: scale the StatefulSet back with the command in the hold.",
			},
		},
		{
			Name:  "remedy",
			Means: "No quorum of members runs, and the data of a quorum is whole on its volumes: they need too much memory, lack an image or a node, are refused by Kubernetes, or do not start with their settings.",
			Why:   "As nothing serves, a restart costs nothing: changed settings are applied to the members that are down, one after the other, until there is a quorum. A new version waits for that, and no member that may serve is stopped.",
			Do: []string{
				"Commit what lets them start: spec.podTemplate (resources, node selector, tolerations, priority class), spec.image, spec.etcd; or revert the commit that broke them.",
				"Where a node does not report, bring it back first: it is unknown whether etcd still runs there.",
				"Neither delete volume claims nor write spec.recovery: both give up data that exists.",
			},
		},
		{
			Name:  "settled",
			Means: "The StatefulSet controller has not caught up with the last change, or is replacing a pod.",
			Why:   "The pods do not show the effect of the last step yet.",
			Do: []string{
				"Where it lasts, the hold names what blocks the pod: check the node, the volume, and that kube-controller-manager runs.",
				"A pod on a node that does not report is never assumed to have stopped: bring the node back; only where it is certainly off, force-delete the pod, or taint the node out-of-service. On a node that still runs, a second etcd would start with the same data.",
			},
		},
		{
			Name:  "reachable",
			Means: "No member answers quorate, and enough of them are ready for a quorum: the cluster serves, and only quorate cannot reach it. A spec.recovery is refused, and recorded as refused.",
			Why:   "The readiness probe of each pod reads through a quorum every second, and the kubelet asks it from the node: that shows that the members serve. That quorate gets no answer does not show that they are down. The readiness of pods on a node that does not report is not counted.",
			Do: []string{
				"kubectl get networkpolicy -A: allow quorate's namespace to reach port 2379. Exempt that port from a mesh's mutual TLS. With authentication on in etcd, quorate logs in as user root, by the common name of its certificate, or without TLS by a password: see docs/users.md.",
				"From a laptop, quorate plan needs a route to the pods' addresses: run it in the cluster where there is none.",
				"Remove spec.recovery from the file, if it is there. A refused recovery is not applied later, even if the quorum is lost then.",
			},
		},
		{
			Name:  "recovery",
			Means: "The cluster has lost its quorum: too few members are left to agree on a write. The hold lists what is left of each. Or that is unknown, because members are on nodes that do not report to Kubernetes. Or a recovery was requested and is refused.",
			Why:   "Continuing with less than a quorum may lose acknowledged writes, so quorate never does it automatically.",
			Do: []string{
				"First bring members back: their nodes, their volumes, their pods. With a quorum, nothing is lost.",
				"What is on a node that only does not report may serve clients. Where the node is off for certain, delete its Node object or taint it node.kubernetes.io/out-of-service: no recovery begins before.",
				"Only where that cannot be, write the spec.recovery that the hold gives: from a member that is left, or from a backup. It works once, and keeps the old data.",
				"When there is a quorum again, remove spec.recovery from the file.",
			},
		},
		{
			Name:  "trusted",
			Means: "Members that run do not trust a certificate in one of the Secrets: its authority was changed, with tls.mode: Secrets, or the Secrets were put back from before a change of the authorities, with tls.mode: Managed. Members read which authorities they trust only when they start.",
			Why:   "Members take up a new certificate within about two minutes, and those that do not trust it refuse its connections.",
			Do: []string{
				"Put the former certificate back into the Secret.",
				"Then put both authorities into ca.crt, wait until quorate has restarted the members, and only then issue certificates from the new one: docs/certificates.md.",
				"With tls.mode: Managed put all Secrets of certificates and authorities back as they were; once no member serves any more, quorate restarts all of them with what the Secrets say.",
				"If the members have lost each other already, and their pods mount no NAME-trust-… Secret, delete all their pods at once: they start with what the Secrets have now.",
			},
		},
		{
			Name:  "holdings",
			Means: "Each volume claim is annotated with the member whose data it holds. A volume that is not known to be a member's is never deleted.",
			Why:   "It may hold the only copy of some data.",
			Do:    []string{"Check what the volume of the claim holds; delete the claim yourself if the data is not needed."},
		},
		{
			Name:  "noauth",
			Means: "A rollout between 3.4 and 3.5, a new member on a release with a known fault, a change between plain text and TLS, or one to another program's certificates with a client certificate that does not name root, is due, and authentication is on in etcd, or it is unknown whether it is.",
			Why:   "Members of 3.4 read a password that a member of 3.5 has written as an empty one, and a new member of such a release may hold different data than the rest. etcd supports neither. The other two would lock quorate out.",
			Do: []string{
				"Commit spec.auth.enabled: false, in the same change if you like: authentication is switched off first, and users and roles are kept. Commit true again afterwards. Meanwhile every client with a client certificate may read and write everything.",
				"Where it was switched on by hand, etcdctl auth disable does the same.",
				"Where the hold names a release that fixes the fault, upgrade to that first.",
			},
		},
		{
			Name:  "membership",
			Means: "A member joins or leaves, and that has not ended yet; or the members that answer are not those of the state ConfigMap.",
			Why:   "One change of the members at a time: two could cost the quorum.",
			Do: []string{
				"Check the pod and the node of the member that the message names. A join that fails is retried, less often each time.",
				"etcdctl member list shows what the members themselves say; remove a learner that is not wanted there.",
			},
		},
		{
			Name:  "repair",
			Means: "A member is lost, or seems to be, and is not replaced yet: it may return, a backup comes first, more than one is lost, it is unknown whether it serves, or spec.repair.mode is Never.",
			Why:   "Only a member that has lost its data, or whose volume was put back to an older snapshot, is replaced. One that answers, or that the leader still hears from, is not lost, whatever Kubernetes says about its node. Two members that are lost at once usually share one cause, which replacing them would hide.",
			Do: []string{
				"Bring its node or its volume back, if you can.",
				"Set spec.repair.mode to Automatic, or to OneByOne where several are lost.",
			},
		},
		{
			Name:  "alarms",
			Means: "etcd has raised an alarm. Under NOSPACE it takes no writes until there is space; under CORRUPT it refuses to serve, because the members' data differs.",
			Why:   "Space is freed only in a cluster that is healthy otherwise, and never by deleting keys. quorate must be able to prove which data is right.",
			Do: []string{
				"NOSPACE: raise spec.etcd.quotaBackendBytes in a commit of its own, or delete keys; quorate compacts, defragments and clears the alarm.",
				"CORRUPT: compare the members with etcdctl endpoint hashkv --cluster, and delete the pod and the claim of the one that is wrong; or restore a backup into a new cluster.",
			},
		},
		{
			Name:  "clients",
			Means: "The certificate of an application is issued: it is new in spec.tls.clients, its certificate is due for renewal, or its Secret was deleted or damaged.",
			Why:   steps,
		},
		{
			Name:  "copies",
			Means: "The Secret of an application in another namespace, one of namespaces in spec.tls.clients, is updated to what it is in the namespace of the cluster; or it is deleted, as the file no longer lists it.",
			Why:   steps,
		},
		{
			Name:  "missing",
			Means: "The pod of a member does not exist: Kubernetes refuses it (a quota, Pod Security, a policy, a priority class that does not exist), and the hold quotes the refusal; or no controller creates it.",
			Why:   "A rollout stops there, as every other member that restarted now would be refused as well. Repairs continue meanwhile: their rules come first.",
			Do: []string{
				"In a rollout, revert the commit: the pod is recreated as it was.",
				"Or let Kubernetes admit it, or commit what it admits: kubectl describe statefulset shows each refusal.",
				"Where nothing is refused, check that kube-controller-manager runs.",
			},
		},
		{
			Name:  "storage",
			Means: "The file asks for volumes that the existing ones cannot become: a smaller size, or another StorageClass without spec.storage.classChange: Replace.",
			Why:   "No volume shrinks, and none changes its class. Members are repaired meanwhile, and nothing else changes.",
			Do: []string{
				"Set the size or the class back: quorate compares with the volumes, so that a commit is honoured which asks for what they have.",
				"Write spec.storage.classChange: Replace to have each member replaced by one on a new volume.",
				"Storage of a new cluster may change as long as no volume exists behind its claims: the StatefulSet and its claims are then recreated.",
			},
		},
		{
			Name:  "path",
			Means: "A member cannot get from its release to the one in Git by upgrades or downgrades that etcd supports; or the release is unknown or unsafe.",
			Why:   "etcd supports one minor at a time, each from a least patch on, and down only with its downgrade API. A member on another path may not start, or may lose data.",
			Do:    []string{"Set spec.version to a release that every member can change to; upgrade.path: Stepwise upgrades through the minors between."},
		},
		{
			Name:  "quota",
			Means: "The file asks for a smaller quota than the database of a member comes near (80 %).",
			Why:   "The first member that restarts with it would raise the alarm NOSPACE, and the whole cluster would take no more writes.",
			Do: []string{
				"Set spec.etcd.quotaBackendBytes back. Leaving the field out means etcd's default, 2Gi.",
				"Or delete keys, wait until the members are compacted and defragmented, and commit the smaller quota again.",
			},
		},
		{
			Name:  "mend",
			Means: "A member that an abandoned rollout broke is repaired before the cluster is downgraded to an older minor: it gets its former release and settings.",
			Why:   "etcd does not downgrade while a member is down.",
			Do:    []string{"Where its pod cannot start with the old release either, the hold says why."},
		},
		{
			Name:  "member",
			Means: "The member that was restarted last is not back yet, or does not come back: then the rollout has stopped at it.",
			Why:   "The next member is restarted only after this one is healthy, has caught up and has stayed so for a while.",
			Do: []string{
				"kubectl describe pod and kubectl logs of that member.", "Revert the commit to roll back, or fix the cause in a new one.",
				"Where its pod does not stop, the hold names its node or its finalizers. Force-delete it only where its node is certainly off.",
			},
		},
		{
			Name:  "health",
			Means: "A member is not healthy, by its own status or by that of its pod; or the members' data differs.",
			Why:   "This is the health gate: the rules after it never stop a member while another one is unhealthy.",
			Do: []string{
				"Check the member that the message names.", "The hold lists what else can be done, such as having it replaced.",
				"A downgrade that neither Git nor the state ConfigMap knows was started by hand, or the ConfigMap is older than it: let it finish, end it with etcdctl downgrade cancel, or restore the ConfigMap.",
			},
		},
		{
			Name:  "claims",
			Means: "The volume claim of a member is being deleted, is missing or has lost its volume. The member still serves, and its data is deleted when its pod stops. Nothing that stops a member is started.",
			Why:   "Kubernetes cannot take back the deletion of a claim: it waits for the pod to stop, and then deletes the volume. If the claims of several members are being deleted, restarting each of them would lose everything.",
			Do: []string{
				"Take a backup now, with an EtcdBackup.",
				"Replace the members one at a time: delete the pod of one, wait until a new member has taken its place and all are healthy, then the next.",
				"For a cluster of one or two members, set spec.replicas: 3 first, so that other members have the data.",
				"Drain no node meanwhile: an eviction stops a pod, too.",
			},
		},
		{
			Name:  "fight",
			Means: "Another writer repeatedly changes what quorate applies; or the API server changes it on admission, or refuses it. quorate waits longer each time.",
			Why:   "Two writers that undo each other's changes would restart or reconfigure the cluster endlessly. Members that start with something else than Git says may lose data. Without its Services and its PodDisruptionBudget a cluster is not safe to restart: during a rollout the budget allows no eviction, so that draining a node cannot stop a second member.",
			Do: []string{
				"Stop the field manager that the hold names from changing that field, or write its value into the file.",
				"kubectl get mutatingadmissionpolicies,mutatingwebhookconfigurations shows what changes objects on admission; exempt the namespace, or the object. kubectl get validatingadmissionpolicies,validatingwebhookconfigurations, and kubectl describe resourcequota in the namespace, show what refuses them.",
				"Where something else has the name of an object, rename the cluster, or remove what is in the way.",
				"A policy that forbids PodDisruptionBudgets which allow no eviction blocks rollouts: exempt the budget of the cluster.",
			},
		},
		{
			Name:  "auth",
			Means: "Users, roles, permissions and authentication are changed to what spec.auth says, one after the other; or a restored cluster admits no clients yet, because what spec.auth says cannot be done.",
			Why:   "quorate sets up its own access first, then that of the others, and switches authentication on last: no half-finished change locks out quorate or a user of the file.",
			Do:    []string{"Do what the hold says about the Secret or the certificate. What is not listed in the file is kept, unless spec.auth.prune is true."},
		},
		{
			Name:  "fleet",
			Means: "It is not this cluster's turn: as many others as --max-disrupted allows are being changed, or a lower upgrade.wave is not done: a cluster of it is not what its file says, or a check of it (spec.upgrade.checks) does not hold.",
			Why:   "A bad change must not reach many clusters at once.",
			Do: []string{
				"Check the clusters that the message names: one that is stopped keeps the others waiting.",
				"Ask what the check asks yourself, from a pod of quorate's namespace: what cannot be reached, answers late or has no result does not hold. A host that --check-hosts does not name is never asked.",
				"For a check of a CronJob, start a run with `kubectl create job --from=cronjob/NAME NAME-now`: only one that began after the last change of the lower waves counts, and the newest that has ended decides.",
				"If the check itself is wrong, change it or take it out of spec.upgrade.checks of the cluster that the message names; nothing of that cluster restarts for it.",
				"Raise --max-disrupted, or change the waves, if you mean to; or set spec.mode of that cluster to Observe, and no other cluster waits for it.",
				"A broken cluster that quorate leaves alone no longer counts after an hour. A lower wave is never skipped.",
			},
		},
		{
			Name:  "window",
			Means: "The change restarts members, and the maintenance window is closed.",
			Why:   "spec.maintenance says when members may restart.",
			Do:    []string{"Wait until it opens, as the message says; or change spec.maintenance in a commit."},
		},
		{
			Name:  "confirm",
			Means: "Before a member is restarted or removed, the health of all members is checked once more, with what they have applied.",
			Why:   "One earlier health check is not enough to stop a member.",
			Do:    []string{"Nothing, for some seconds. Where it lasts, the message names the member that lags."},
		},
		{
			Name:  "hibernate",
			Means: "The cluster is about to hibernate: a backup is taken first, then every member stops and its volume is kept.",
			Why:   "Members that do not run cannot give a backup.",
			Do:    []string{"Set spec.backup.destination.objectURLTemplate, or set spec.upgrade.backup to Skip to do without a backup."},
		},
		{
			Name:  "backup",
			Means: "This change needs a backup first, and it cannot be taken: no destination is set, no member can give one, or the object store fails.",
			Why:   "The backup is the way back that does not depend on the members.",
			Do: []string{
				"Set spec.backup.destination.objectURLTemplate, or the daemon's --backup-url, which is BACKUP_URL of the ConfigMap quorate-settings with deploy/base.",
				"Set the field that the hold names, such as spec.upgrade.backup, to Skip to do without a backup.",
				"Revert the commit to leave the cluster as it is.",
			},
		},
		{
			Name:  "shrink",
			Means: "Members beyond spec.replicas are removed, one at a time, the highest ordinal first.",
			Why:   "The quorum shrinks with the members: the others must be healthy before each removal.",
			Do:    []string{"Check the member that the message names."},
		},
		{
			Name:  "remove",
			Means: "The volumes of removed members are deleted, where Git says so, and their pods are not gone yet.",
			Why:   "A volume is deleted only when no pod uses it.",
			Do:    []string{"Nothing, unless the pod does not stop: then check its node."},
		},
		{
			Name:  "flush",
			Means: "Every member takes a snapshot of its state before the upgrade to the next minor, which cannot read what its log may hold.",
			Why:   "3.7 panics on entries that a log of 3.5 may still have.",
			Do:    []string{"Nothing, for a moment. Where it lasts, check the log and the disk of the member that the message names."},
		},
		{
			Name:  "downgrade",
			Means: "etcd's downgrade API was called, and the members migrate their storage to the older minor before any of them starts with it.",
			Why:   "The older release cannot read the newer storage.",
			Do: []string{
				"Nothing, for a moment. Where it lasts, a feature is in use that only the newer minor has: check the log of the member that the message names.",
				"Revert the commit to cancel the downgrade, while a member still runs the newer minor.",
			},
		},
		{Name: "start", Means: "The StatefulSet gets the new template. No pod restarts for that yet.", Why: steps},
		{
			Name:  "surge",
			Means: "The only member is to be replaced by way of a second one (spec.upgrade.maxSurge), which could not join yet, or whose data is compared.",
			Why:   "The first member serves until the second one is a voter and has all data.",
			Do:    []string{"Where the second member could not join, its pod and its node say why; the first one is left alone meanwhile.", "Revert the commit where it cannot start with what Git asks for."},
		},
		{
			Name:  "soak",
			Means: "The member that was restarted last has been healthy for less than the soak time.",
			Why:   "Some faults take a minute to show.",
			Do:    []string{"Nothing; it ends on its own."},
		},
		{
			Name:  "leader",
			Means: "The leader restarts next, and its leadership cannot be moved to another member.",
			Why:   "If a leader just stops, clients wait for an election.",
			Do:    []string{"Check the other members: one of them must be healthy and caught up."},
		},
		{
			Name:  "compare",
			Means: "Before the first member of a rollout restarts, the data of all members is compared, one member after the other. Each member serves no other request while its data is read.",
			Why:   "Where members hold different data, the one that stops may be the only one that is right. After that, etcd itself compares each member that starts with the others.",
			Do:    []string{"Nothing, for some seconds to minutes, by the size of the database. Where it lasts, the message names the member that could not be compared: check its disk."},
		},
		{
			Name:  "restart",
			Means: "A member would restart, and must not: its pod could not start, or it would start with a release that the cluster cannot have.",
			Why:   "Restarting a healthy member for a pod that cannot start would leave two members down.",
			Do:    []string{"Fix what keeps the pod that the message names from starting: the image, the node, the volume."},
		},
		{
			Name:  "end",
			Means: "Every member runs what Git says, and etcd or the StatefulSet controller finishes the rollout within seconds.",
			Why:   "A rollout is complete when the cluster version is the new one.",
			Do:    []string{"Nothing; it ends on its own."},
		},
		{
			Name:  "volumes",
			Means: "Volumes are expanded, or replaced by volumes of another class one member at a time, and that is not complete or cannot begin.",
			Why:   "A volume of another class is filled by the other members: one at a time, inside the maintenance window, and never for a single member.",
			Do:    []string{"Check the claim that the message names.", "For a cluster with one member, raise spec.replicas to 3 first."},
		},
		{
			Name:  "grow",
			Means: "New members join, one at a time, as learners without a vote.",
			Why:   "A member that has not caught up must not count for the quorum.",
			Do:    []string{"Check the pod and the node of the member that the message names."},
		},
		{Name: "admit", Means: "The client Service of a restored cluster appears after all its members have joined.", Why: steps},
		{
			Name:  "defragment",
			Means: "A database should be defragmented, and is not: its release may lose data while it does, or a member is unhealthy.",
			Why:   "A member serves nothing while it is defragmented, and some releases have bugs in it that lose data.",
			Do:    []string{"Upgrade first. Under NOSPACE raise spec.etcd.quotaBackendBytes before that, in a commit of its own."},
		},
		{
			Name:  "users",
			Means: "A user cannot be what spec.auth says, because its password cannot be read; or authentication stays off, because quorate would be locked out, or the release has a fault.",
			Why:   "Authentication is switched on when every user is there and quorate's own access is proven: a user who is locked out cannot undo it.",
			Do: []string{
				"Create the Secret that the hold names, with the label quorate.dev/use: passwords, or correct spec.auth.",
				"With tls.mode: Secrets issue the client certificate for quorate with the common name root.",
				"Where the members do not answer about users, quorate status shows what is wrong with them.",
			},
		},
		{Name: "applied", Means: "The version and the commit that every member now runs are recorded in the state ConfigMap.", Why: steps},
		{
			Name:  "transport",
			Means: "spec.tls.mode changes between plain text and TLS. Members restart and listen to both; etcd's member list gets the new URLs, member by member; then clients have time to move, and members restart and listen to one of the two alone.",
			Why:   "At each moment each member must reach all others, and the clients must reach them all. This rule is among the last, so it blocks little else.",
			Do: []string{
				"Nothing, until the time that the hold names: move the clients meanwhile, with the certificates of spec.tls.clients, or away from them. spec.tls.overlap sets the time.",
				"To go back, set the former mode, at any time: members move back the same way.",
			},
		},
		{
			Name:  "issuer",
			Means: "spec.tls.mode changes between Managed and Secrets: members trust both issuers, then present certificates of the new one, and then trust that one alone. Clients now have time to follow, or a certificate of the new issuer is not valid.",
			Why:   "At each moment each member must trust what all others and the clients present. Some clients read what they trust only when they start. This rule is among the last, so it blocks little else.",
			Do: []string{
				"Until the time that the hold names, have applications trust both issuers, which are in the Secret NAME-trust-… that the members mount, and then present certificates of the new one. spec.tls.overlap sets the time.",
				"Replace the Secret that the hold names.",
				"To go back, set the mode back.",
			},
		},
		{
			Name:  "rotation",
			Means: "The authorities of a cluster change: members trust both, all certificates are issued by the next ones, and members trust those alone. Clients now have time to follow, or a member has not shown in a handshake that it did.",
			Why:   "At each moment each member must trust what all others and the clients present. Some clients read what they trust only when they start. This rule is among the last, so it blocks little else.",
			Do: []string{
				"Nothing, until the time that the hold names: restart meanwhile every client that reads its certificates only when it starts. spec.tls.overlap sets the time.",
				"After that, allow quorate to reach the ports 2379 and 2380 of the members, and read the log of the member that the hold names.",
				"To go back, set spec.tls.rotate to its former value, until members begin to trust the next authorities alone.",
			},
		},
		{
			Name:  "bundle",
			Means: "With tls.mode: Secrets, the ca.crt of a Secret has changed. Members read it only when they start, so they restart, one at a time, when the content of the Secrets has reached every pod.",
			Why:   "Members that have restarted must still trust one that presents its former certificate. What members trust is kept in the Secrets NAME-trust-…, named by its content.",
			Do:    []string{"Nothing; it ends on its own three minutes after the last change of the Secrets."},
		},
		{
			Name:  "expiry",
			Means: "A certificate that quorate cannot renew expires within weeks: one of tls.mode: Secrets, or an authority whose rotation is blocked. Or the Secret of an application in spec.tls.clients exists and is not managed by quorate.",
			Why:   "After it has expired, a member that restarts cannot rejoin. quorate writes no Secret that it did not create. This rule is the last one, so it blocks nothing else.",
			Do: []string{
				"Replace the Secret that the hold names, before the day that it names; for an authority of quorate's, find out what blocks its rotation.",
				"For that of an application: delete or rename the Secret, or name another one with secretName.",
			},
		},
		{
			Name:  "observe",
			Means: "The file says mode: Observe: quorate reports the step that it would take, and takes none.",
			Why:   "spec.mode says so.",
			Do:    []string{"Set spec.mode to Enforce to let quorate act."},
		},
	}
	for i := range list {
		list[i].Topic = Rule
	}
	return list
}
