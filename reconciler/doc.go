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
//	observe      Kubernetes and etcd → a View; slim: what its caches keep of objects
//	rounds       members asked apart from what is decided: who answers late has a lane of its own,
//	             and those at rest are only glanced at
//	starvation   for how long the process was kept from running: what is late for that proves nothing
//	checks       checks of the user's own, before a higher wave begins: a URL, a query of PromQL,
//	             a run of a CronJob
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
//	             plan/waves: which other clusters come first;
//	             plan/times: the rule about times that lie ahead of the clock;
//	             plan/bundles: those about what members trust of other issuers' certificates;
//	             plan/action: what can be done, each with its effect and its way back;
//	             plan/outlook: what comes of it when all goes well, for the forecast
//	grants       users and roles against what the file says
//	passwords    those of users, from Secrets, and the one by which quorate itself comes in
//	execute      an action → API calls and requests to the members
//	report       log lines, Events, metrics, the status of each object;
//	             report/series: a gauge or counter for each of many clusters, in little memory
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
//	jobs         the Jobs that quorate starts; restore: what one writes on a volume;
//	             restore/identity: the IDs that etcd will have there
//	stores       backups reached with Secrets; backup: the backups themselves;
//	             backup/driver: what backup requires of a kind of object store; backup/s3store,
//	             backup/googlestore, backup/azurestore: these kinds, with the SDK of each;
//	             backup/clouds: all of them, for programs and for tests that reach one
//	certs, bundle, manifests, drift, pods, kube, naming, queue, memo   what these build on
//
// # Words
//
// What users read, too: docs/concepts.md has the same.
//
//	reconcile       compare a cluster with what Git says, and take the next step towards it:
//	                whenever something about it changes, and at least every --resync (30s)
//	plan            the steps between a cluster and what Git says, in order, each with its reason
//	                and until when it can be undone
//	action          one idempotent change: of an object in Kubernetes, of etcd, or of the record
//	step            an action with its reason; a cluster is changed by one step at a time, and
//	                planned again after each
//	hold            why nothing is done to a cluster for now, since when, and what a person can do
//	record          the ConfigMap NAME-record beside a cluster, in which quorate notes what cannot
//	                be seen elsewhere: who the members are, and what has begun
//	owner           the one quorate that may act on a cluster: the repository, branch and path
//	                that it follows, and the name of its instance
//	guard           the container that runs before etcd in each pod of a member: it lets etcd
//	                start only on the volume that holds the data of this member
//	rolling update  the restart of all members, one at a time, onto another pod template; in
//	                short, a rollout or a roll
//	template        the hash of a rendered pod template, which each pod made of it carries
//	partition       the StatefulSet's cursor of a rolling update: only pods with an ordinal at or
//	                above it may take the new template
//	health gate     what must hold before a member stops: every member is healthy, twice in a row,
//	                and has caught up with the leader
//	soak            how long a restarted member must have been ready before the next one is
//	                touched (spec.upgrade.soak)
//	waypoint        a release, or a setting, that a rolling update passes through before the
//	                version in Git
//	window          a time in which members may be restarted (spec.maintenance)
//	wave            clusters whose rolling updates come before those of clusters with a higher
//	                number (spec.upgrade.wave)
//	check           what must be true of a cluster before a higher wave begins: an answer by HTTP,
//	                a query of PromQL, or a run of a CronJob (spec.upgrade.checks)
//	voter, learner  a member that counts for the quorum, and one that does not: a new member is a
//	                learner until it has caught up
//	surge           a second member that takes over while the only one of a cluster is replaced
//	                (spec.upgrade.maxSurge)
//	drift           what differs from what Git says because another writer has changed it
//	drill           a backup restored into an ephemeral etcd, and compared with its manifest
//	manifest        what lies beside a backup in its store: its size and sha256, the cluster, the
//	                release, the revision, the time; without one it is no backup
//	forecast        the steps that would follow if each had its effect
//
// # Words of the code
//
//	View            all that one pass knows about one cluster, and the live objects behind it
//	pass            one time that a cluster is reconciled, as drawn above
//	round           one question to all members of a cluster; deep where it compares hashes
//	glance          one question to each member at rest: whether all is as in the last round
//	situation       a View as the rules see it, at one time
package reconciler
