// Package reconciler is the loop of the daemon: for each cluster that Git names it
// observes, plans, executes at most one action, and reports.
//
// # One pass
//
//	observe   the caches for Kubernetes, the members themselves for etcd
//	plan      plan.Make; where it asks for confirmation, the members are asked again
//	again     what a decision rests on is read past the caches, and decided again:
//	          only the very same action is executed
//	execute   one idempotent method per action
//	report    the step or the hold, as a log line, an Event and metrics
//
// Then the cluster's key goes back into the queue. Nothing that decides is kept in the
// process: it may be killed between any two instructions.
//
// # Where things are
//
// Data flows one way: sources → schema → desired → observe → plan → execute → report.
//
//	desired      what one commit wants of clusters, backups and restores
//	observe      Kubernetes and etcd → a View
//	rounds       members asked apart from what is decided: who answers late has a lane of its own,
//	             and those at rest are only glanced at
//	copies       Secrets of applications in other namespaces, and which are not as Git says
//	modes        which form of spec.tls counts while its mode changes
//	state        the words of the planner: Desired and Observed as plain values
//	plan         the rules in one table, and the forecast;
//	             plan/situation: the questions that the rules ask about one cluster;
//	             plan/verdict: what one rule says; plan/volumes: the rules about volumes;
//	             plan/recovery: the rules about a cluster without a quorum;
//	             plan/certificates: those about certificates, and plan/trust: which authorities
//	             members are to trust, and how far a change of them is; plan/transport: whether
//	             members are reached over plain text, TLS or both, and how far a change of that is;
//	             plan/objects: the rules about objects that others, or admission, change;
//	             plan/auth: the rules about users and roles; plan/logs: the one about members' logs;
//	             plan/surge: whether an only member is replaced by way of a second one, and how far that is;
//	             plan/times: the rule about times that lie ahead of the clock;
//	             plan/bundles: those about what members trust of other issuers' certificates;
//	             plan/action: what can be done, each with its effect and its way back;
//	             plan/outlook: what comes of it when all goes well, for the forecast
//	grants       users and roles against what the file says
//	passwords    those of users, from Secrets, and the one by which quorate itself comes in
//	execute      an action → API calls and requests to the members
//	report       log lines, Events, metrics, the status of each object
//	explain      what each hold means and what to do, for people
//	statuses     that status in a ConfigMap beside each object, and the phase on StatefulSets:
//	             for people, never read back
//	preview      what a change would do, for its reviewers
//	scheduler    EtcdBackup and EtcdBackupSchedule: take, drill, retain;
//	             schedule: when one is due, and from which member
//	etcd         the members: health, leadership, member list, maintenance, snapshots
//	handshake    whom a member trusts, and what it shows, by TLS on its two ports
//	forward      members asked through the API server, by commands from outside
//	clock        what times are worth that other machines have noted
//	record       what outlives the process about one cluster; guard reads it in a pod
//	jobs         the Jobs that quorate starts; restore: what one writes on a volume
//	stores       backups reached with Secrets; backup: the backups themselves
//	certs, bundle, manifests, drift, pods, kube, naming, queue, memo   what these build on
//
// # Words
//
//	View        all that one pass knows about one cluster, and the live objects behind it
//	round       one question to all members of a cluster; deep where it compares hashes
//	glance      one question to each member at rest: whether all is as in the last round
//	situation   a View as the rules see it, at one time
//	action      one idempotent change of the world; a step is an action with its reason
//	hold        why nothing is done for now, since when, and what a person can do
//	waypoint    a release, or a setting, that a roll passes through before the
//	            version in Git
//	roll        a rollout: the restart of all members, one at a time, onto another pod template
//	template    the hash of a rendered pod template, which each pod made of it carries
//	partition   the StatefulSet's cursor of a roll: only pods with an ordinal at or above
//	            it may take the new template
//	window      a time in which members may be restarted
//	record      the ConfigMap in which quorate notes what cannot be seen elsewhere
//	forecast    the steps that would follow if each had its effect
//	drill       a backup restored into an ephemeral etcd, and compared with its manifest
//	wave        clusters that are upgraded before those with a higher number
package reconciler
