package plan

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

var update = flag.Bool("update", false, "rewrite the plans of testdata/scenarios")

// Each file of testdata/scenarios is one scenario: what Git says, what the
// cluster is, and the plan. A file is a txtar archive whose first line names
// the scenario; its sections hold settings ("key: value") and tables, whose
// first line names the columns, "-" is empty, and the last column may hold
// blanks. What is left out is as in a healthy cluster.
//
//	desired       version, template, replicas …, as Git says; stops are those on
//	              the way, their templates are their names (3.6.16+flush)
//	record        cluster, members (their number, ordinals, or names with IDs),
//	              applied (hash and version), backup (cluster,
//	              what for and age; stored is its URL), born (unless it is the applied line), nudged
//	              (template, age, and how often each had saved its state),
//	              downgrade (line and age); no section is no record
//	certificates  missing, problem, due, ending and ends; client (a Secret and why);
//	              authorities is the age of those of ten years; listens is what the
//	              template listens to, and to what else; what members
//	              trust of another issuer's: trusts (kept), wants, changed (age), refused;
//	              issuer is the mode that Git asks for, of two issuers, and other-problem and
//	              other-missing are what that lacks
//	objects       kind name state detail, and how much longer somebody else's
//	              changes are left alone (fight); no section is one Service in sync
//	volumes       a row each, sizes in Gi; the capacity is the size, and it holds what
//	              its member has left unless another ID, foreign or none stands there
//	set           template and current (hash and version), partition, settled,
//	              immutable, status and changed (ages), refused (age, and why a missing pod
//	              cannot be created), refused-last (age); no section is no StatefulSet
//	pods          a row each
//	restore       how far the restore of a volume is
//	members       a row each, as the second of two looks had them
//	before        the first look, where it differs
//	auth          users and roles: has file, or nothing; no section is nothing, with authentication off
//	fleet         limit, and a row each for other clusters: disrupted, unfinished, or checked
//	plan          what Make says
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "scenarios", "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a := readArchive(t, path)
			d, o := a.desired(t), state.Observed{Auth: &state.Auth{}}
			a.observe(t, d, &o)
			made := Make(d, o, noon)
			if problem := decidesOtherwise(d, o, made); problem != "" {
				t.Error(problem)
			}
			got := made.Text()
			if *update {
				a.replacePlan(t, got)
				return
			}
			if want := a.sections["plan"]; got != want {
				t.Errorf("%s\ngot:\n%s\nwant:\n%s", a.title, got, want)
			}
		})
	}
}

// archive is a file in the txtar format.
type archive struct {
	path, title, text string
	sections          map[string]string
}

func readArchive(t *testing.T, path string) archive {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return parseArchive(t, path, string(data))
}

func parseArchive(t *testing.T, path, text string) archive {
	t.Helper()
	a := archive{path: path, text: text, sections: map[string]string{}}
	a.title, _, _ = strings.Cut(a.text, "\n")
	name := ""
	for l := range strings.Lines(a.text) {
		if rest, ok := strings.CutPrefix(l, "-- "); ok {
			name = strings.TrimSuffix(strings.TrimSpace(rest), " --")
			a.sections[name] = ""
			if _, known := vocabulary()[name]; !known {
				t.Fatalf("no such section: %s", name)
			}
			continue
		}
		a.sections[name] += l
	}
	return a
}

// replacePlan writes the plan, which is the last section.
func (a archive) replacePlan(t *testing.T, plan string) {
	t.Helper()
	head, _, _ := strings.Cut(a.text, "-- plan --\n")
	if err := os.WriteFile(a.path, []byte(head+"-- plan --\n"+plan), 0o644); err != nil {
		t.Fatal(err)
	}
}

// vocabulary are the keys and columns of each section, so that a slip of the
// pen is no scenario of its own.
func vocabulary() map[string]string {
	look := "listened cluster version alarms downgrading problem looks deep at name id leader term applied commit learner hash db inuse quota revision compacted errors storage saved denied peers"
	return map[string]string{
		"desired": "version template spec replicas soak mode backup backup-url problems window state quota " +
			"repair repair-after removed-volumes deletion-volumes deletion-backup storage class-change defragmentation " +
			"owner take-over wave recovery image rotate tls " +
			"path stops max-surge restore chosen unclear none auth",
		"auth": "has enabled no-secret no-access problem",
		"record": "cluster members applied backup roll-backup problem " +
			"joining leaving replacing retired failed hibernated deleted founders " +
			"owner recovering recovered refused stored restored claims " +
			"born flushed nudged downgrade settings compacted defragmented seen",
		"certificates": "missing problem due ending ends client authorities listens trusts wants changed refused issuer other-problem other-missing copies copy-refused",
		"fleet":        "limit state name wave since broken check for why",
		"objects":      "leftovers kind name state fight detail", "volumes": "claim holds keeps size capacity class terminating bound growing rigid trouble created going finalizers",
		"set":     "template current replicas partition settled immutable claims created terminating going finalizers scaled-by status changed refused refused-pods refused-last",
		"pods":    "name template version ready since runs created damaged terminating going lost-node finalizers ran crashed unpulled damage node-gone node-stopped node-silent silent-node unclaimed shut drained barred unreported down trouble",
		"restore": "state detail job", "trial": "state problem why job since",
		"members": look, "before": look, "plan": "",
	}
}

// row is a row of a table by column, or the settings of a section by key.
type row map[string]string

// read splits a section into its settings and the rows of its table.
func (a archive) read(t *testing.T, section string) (settings row, rows []row) {
	t.Helper()
	settings = row{}
	var columns []string
	knows := func(words ...string) {
		for _, w := range words {
			if !slices.Contains(strings.Fields(vocabulary()[section]), w) {
				t.Fatalf("%s: no such key or column: %s", section, w)
			}
		}
	}
	for l := range strings.Lines(a.sections[section]) {
		fields := strings.Fields(l)
		switch {
		case len(fields) == 0:
		case strings.HasSuffix(fields[0], ":"):
			key := strings.TrimSuffix(fields[0], ":")
			settings[key] = strings.Join(fields[1:], " ")
			knows(key)
		case columns == nil:
			columns = fields
			knows(columns...)
		default:
			r, last := row{}, len(columns)-1
			for i, f := range fields {
				if name := columns[min(i, last)]; f != "-" {
					r[name] = strings.TrimSpace(r[name] + " " + f)
				}
			}
			rows = append(rows, r)
		}
	}
	return settings, rows
}

// number is a setting as a number, and a fallback where there is none.
func number[T int | int32 | int64 | uint32 | uint64](t *testing.T, r row, key string, fallback T) T {
	t.Helper()
	if r[key] == "" {
		return fallback
	}
	n, err := strconv.ParseInt(r[key], 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return T(n)
}

// ago is a setting as a time before noon.
func ago(t *testing.T, text string) time.Time {
	t.Helper()
	d, err := time.ParseDuration(cmp.Or(text, "1h"))
	if err != nil {
		t.Fatal(err)
	}
	return noon.Add(-d)
}

// list splits a setting at its commas.
func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ", ")
}

func (a archive) desired(t *testing.T) state.Desired {
	t.Helper()
	s, _ := a.read(t, "desired")
	d := state.Desired{
		Namespace: "db", Name: "orders", Commit: "c0ffee", Template: s["template"],
		SpecHash: cmp.Or(s["spec"], s["template"]), BackupURL: "s3://backups/{{ .UID }}.db", Problems: list(s["problems"]),
		Spec: schema.ClusterSpec{Version: s["version"], Replicas: number[int32](t, s, "replicas", 3), Mode: schema.Mode(s["mode"])},
	}
	d.Spec.Upgrade.Backup = schema.BackupPolicy(cmp.Or(s["backup"], string(schema.BackupRequired)))
	d.Spec.Upgrade.Soak = seconds(number[int32](t, s, "soak", 0))
	d.Spec.Upgrade.MaxSurge = number[int32](t, s, "max-surge", 0)
	d.Spec.State = schema.State(s["state"])
	// A schedule of five fields and its zone.
	if last := strings.LastIndex(s["defragmentation"], " "); last > 0 {
		d.Spec.Defragmentation = schema.DefragmentationSpec{Schedule: s["defragmentation"][:last], TimeZone: s["defragmentation"][last+1:]}
	}
	if size, class, _ := strings.Cut(s["storage"], " "); size != "" {
		d.Spec.Storage = schema.StorageSpec{Size: resource.MustParse(size), ClassChange: schema.ClassChange(s["class-change"])}
		if class != "" {
			d.Spec.Storage.StorageClassName = &class
		}
	}
	if s["auth"] != "" {
		d.Spec.Auth = wanted(s["auth"] == "on")
	}
	d.Spec.Repair.Mode = schema.RepairMode(s["repair"])
	if s["repair-after"] != "" {
		d.Spec.Repair.After = &metav1.Duration{Duration: noon.Sub(ago(t, s["repair-after"]))}
	}
	d.Spec.Recovery = recoveryOf(s["recovery"])
	if w := strings.Fields(s["restore"]); len(w) > 2 {
		d.Restore = &state.RestoreFrom{Name: w[0], SpecHash: w[1], SourceHash: "b", Source: w[2], InPlace: len(w) > 3}
		d.Restore.Newest = !strings.Contains(w[2], "://")
		d.Restore.Chosen = state.Chosen{Text: s["chosen"], Problem: cmp.Or(s["unclear"], s["none"]), None: s["none"] != ""}
	}
	d.Spec.Storage.RemovedVolumes = schema.VolumePolicy(s["removed-volumes"])
	d.Spec.Deletion.Volumes = schema.VolumePolicy(s["deletion-volumes"])
	d.Spec.Deletion.Backup = schema.BackupPolicy(s["deletion-backup"])
	if s["quota"] != "" {
		d.Spec.Etcd.QuotaBackendBytes = new(resource.MustParse(s["quota"]))
	}
	d.Spec.TakeOver, d.Spec.Upgrade.Wave = s["take-over"], number[int32](t, s, "wave", 0)
	d.Spec.TLS.Rotate, d.Spec.TLS.Mode = s["rotate"], schema.TLSMode(s["tls"])
	if certificates, _ := a.read(t, "certificates"); certificates["issuer"] != "" {
		d.Spec.TLS.Mode, d.Spec.TLS.Secrets = schema.TLSMode(certificates["issuer"]), schema.TLSSecretNames{Server: "their-server", Peer: "their-peer", Client: "their-client"}
	}
	d.Owner.Source, d.Owner.Instance, _ = strings.Cut(s["owner"], "#")
	d.Spec.Upgrade.Path = schema.UpgradePath(s["path"])
	for _, stop := range strings.Fields(s["stops"]) {
		stop, template, named := strings.Cut(stop, "=")
		if !named {
			template = stop
		}
		version, flush := strings.CutSuffix(stop, "+flush")
		d.Waypoints = append(d.Waypoints, state.Waypoint{Version: version, Flush: flush, Template: template})
	}
	d.Spec.Image.Repository = s["image"]
	if s["backup-url"] == "none" {
		d.BackupURL = ""
	}
	// A window is a schedule, a duration and a zone, in this order.
	if w := strings.Fields(s["window"]); len(w) > 2 {
		last := len(w) - 1
		d.Spec.Maintenance = []schema.MaintenanceWindow{windowOf(strings.Join(w[:last-1], " "), w[last-1], w[last])}
	}
	return d
}

func (a archive) observe(t *testing.T, d state.Desired, o *state.Observed) {
	t.Helper()
	_, pods := a.read(t, "pods")
	for _, r := range pods {
		o.Pods = append(o.Pods, podOf(t, r))
	}
	a.observeRecord(t, o)
	if s, _ := a.read(t, "restore"); s["state"] != "" {
		o.Restore = state.Restore{State: state.RestoreState(s["state"]), Detail: s["detail"], Job: s["job"], Since: noon}
	}
	if s, _ := a.read(t, "trial"); len(s) > 0 {
		o.Trial = state.Trial{State: state.TrialState(s["state"]), Problem: s["problem"], Why: s["why"], Job: s["job"], Since: ago(t, s["since"])}
	}
	a.observeObjects(t, o)
	a.observeSet(t, d, o)
	a.observeFleet(t, o)
	a.observeAuth(t, o)
	if _, asked := a.sections["members"]; !asked {
		return
	}
	last := a.round(t, "members", o.Record)
	last.At = a.at(t, "members", 0)
	if s, _ := a.read(t, "members"); s["listened"] != "no" {
		last.Listened = true
	}
	before := a.round(t, "members", o.Record)
	if _, other := a.sections["before"]; other {
		before = a.round(t, "before", o.Record)
	}
	before.At, before.Deep = a.at(t, "before", time.Second), true
	switch s, _ := a.read(t, "members"); s["deep"] {
	case "both":
		last.Deep = true
	case "none":
		before.Deep = false
	}
	o.Rounds = []state.Round{before, last}
	if s, _ := a.read(t, "members"); s["looks"] == "1" {
		o.Rounds = o.Rounds[1:]
	}
}

// at is when a look was, which is a while ago where it does not say so.
func (a archive) at(t *testing.T, section string, otherwise time.Duration) time.Time {
	t.Helper()
	if s, _ := a.read(t, section); s["at"] != "" {
		return ago(t, s["at"])
	}
	return noon.Add(-otherwise)
}

func (a archive) observeFleet(t *testing.T, o *state.Observed) {
	t.Helper()
	s, rows := a.read(t, "fleet")
	o.Fleet.Limit = int(number[int32](t, s, "limit", 0))
	for _, r := range rows {
		n := state.Neighbour{Name: r["name"], Wave: number[int32](t, r, "wave", 0), Why: r["why"]}
		n.Broken = r["broken"] == "yes"
		if r["since"] != "" {
			n.Since = ago(t, r["since"])
		}
		switch r["state"] {
		case "checked":
			c := state.Check{Cluster: n.Name, Name: r["check"], Problem: n.Why, Since: n.Since}
			if r["for"] != "" {
				c.For = noon.Sub(ago(t, r["for"]))
			}
			o.Fleet.Checks = append(o.Fleet.Checks, c)
		case "unfinished":
			o.Fleet.Unfinished = append(o.Fleet.Unfinished, n)
		default:
			o.Fleet.Disrupted = append(o.Fleet.Disrupted, n)
		}
	}
}

func (a archive) observeObjects(t *testing.T, o *state.Observed) {
	t.Helper()
	s, _ := a.read(t, "certificates")
	o.Certificates = state.Certificates{Missing: list(s["missing"]), Problems: list(s["problem"]), Due: list(s["due"]), Ending: s["ending"]}
	if left, err := time.ParseDuration(s["ends"]); err == nil {
		o.Certificates.Ends, o.Certificates.Notice = noon.Add(left), noon
	}
	if age, err := time.ParseDuration(s["authorities"]); err == nil {
		o.Certificates.Rotation = authoritiesOf(age)
	}
	if s["trusts"] != "" {
		o.Certificates.Trust = state.Trust{Wanted: s["wants"], Kept: list(s["trusts"]), Running: list(s["trusts"]), Refused: list(s["refused"]), ChangedAt: ago(t, s["changed"])}
	}
	own, also, _ := strings.Cut(s["listens"], " ")
	o.Transport = state.Transport{Own: schema.TLSMode(own), Also: schema.TLSMode(also)}
	if to := schema.TLSMode(s["issuer"]); to != "" {
		from := map[schema.TLSMode]state.Transport{schema.TLSSecrets: ownLeaves, schema.TLSManaged: namedLeaves}[to]
		o.Transport = from
		o.Certificates.Issuers = &state.Issuers{Both: "orders-trust-both", Alone: "orders-trust-alone", NamedAt: noon.Add(-time.Hour), Problems: list(s["other-problem"]), Missing: list(s["other-missing"])}
	}
	if secret, why, ok := strings.Cut(s["client"], " "); ok {
		o.Certificates.Clients = []state.ClientCertificate{{Secret: secret, Why: why}}
	}
	for _, of := range strings.Fields(s["copies"]) {
		namespace, secret, _ := strings.Cut(of, "/")
		one := state.ClientCopy{Secret: secret, Namespace: namespace, Why: "is missing"}
		if refused, why, _ := strings.Cut(s["copy-refused"], " "); refused == of {
			one.Refused = &state.Refusal{Problem: why, Since: noon, Until: noon.Add(time.Minute)}
		}
		o.Certificates.Copies = append(o.Certificates.Copies, one)
	}
	_, volumes := a.read(t, "volumes")
	for _, r := range volumes {
		v := volumeOf(t, r)
		v.Holds = cmp.Or(r["holds"], memberOf(o.Record, v.Member))
		if r["holds"] == "none" {
			v.Holds = ""
		}
		o.Volumes = append(o.Volumes, v)
	}
	settings, objects := a.read(t, "objects")
	for _, secret := range list(settings["leftovers"]) {
		o.Leftovers = append(o.Leftovers, state.Object{Kind: "Secret", Name: secret, State: state.ObjectInSync})
	}
	if objects == nil {
		o.Objects = []state.Object{{Kind: "Service", Name: "orders", State: state.ObjectInSync}}
	}
	for _, r := range objects {
		inWords := strings.ReplaceAll(r["state"], "-", " ")
		object := state.Object{Kind: r["kind"], Name: r["name"], State: state.ObjectState(inWords), Detail: r["detail"]}
		if left, err := time.ParseDuration(r["fight"]); err == nil {
			object.Fight = &state.Fight{Manager: "meddler", Fields: r["detail"], Times: 4, Until: noon.Add(left)}
		}
		o.Objects = append(o.Objects, object)
	}
}

func (a archive) observeSet(t *testing.T, d state.Desired, o *state.Observed) {
	t.Helper()
	s, _ := a.read(t, "set")
	if len(s) == 0 {
		return
	}
	template, current := strings.Fields(s["template"]), strings.Fields(s["current"])
	replicas := number(t, s, "replicas", d.Spec.Replicas)
	o.Set = &state.Set{
		UID: "set", Replicas: replicas, Partition: number(t, s, "partition", replicas), Settled: s["settled"] != "no",
		Template: template[0], Version: template[1], CurrentTemplate: current[0], CurrentVersion: current[1],
		Immutable: changesOf(list(s["immutable"])...), Terminating: s["terminating"] == "yes", ScaledBy: s["scaled-by"],
	}
	o.Set.GoingSince, o.Set.Finalizers = told(t, s["going"]), s["finalizers"]
	if s["status"] != "" {
		o.Set.StatusAt = ago(t, s["status"])
	}
	if s["created"] != "" {
		o.Set.Created = ago(t, s["created"])
	}
	if s["changed"] != "" {
		o.Set.ChangedAt = ago(t, s["changed"])
	}
	// Since when Kubernetes refuses a pod, and in which words; it said so last just now.
	if since, why, refused := strings.Cut(s["refused"], " "); refused {
		o.Set.Refusal = &state.PodRefusal{Pods: strings.Fields(s["refused-pods"]), Why: why, Since: ago(t, since), At: ago(t, cmp.Or(s["refused-last"], "0s"))}
	}
	if size, class, _ := strings.Cut(s["claims"], " "); size != "" {
		claims := resource.MustParse(size)
		o.Set.ClaimSize, o.Set.ClaimClass = claims.Value(), class
	}
}

// memberOf is the ID that a volume's claim is marked with when nothing is said: that
// of the member that has it, or had it last.
func memberOf(r *state.Record, name string) string {
	switch {
	case r == nil:
		return ""
	case r.Joining != nil && r.Joining.Member == name:
		return r.Joining.ID
	}
	return cmp.Or(r.Members[name], r.Retired[name])
}

func volumeOf(t *testing.T, r row) state.Volume {
	t.Helper()
	const gi = 1 << 30
	v := memberVolume(r["claim"], number(t, r, "size", int64(8))*gi)
	v.Capacity = number(t, r, "capacity", v.Size/gi) * gi
	v.Class, v.Trouble, v.Growing, v.NotExpandable = r["class"], r["trouble"], r["growing"], r["rigid"]
	if r["created"] != "" {
		v.Created = ago(t, r["created"])
	}
	v.Keeps = r["keeps"]
	v.Bound, v.Terminating = r["bound"] != "no", r["terminating"] == "yes"
	v.Pending = !v.Bound && v.Trouble == ""
	v.GoingSince, v.Finalizers = told(t, r["going"]), r["finalizers"]
	return v
}

func podOf(t *testing.T, r row) state.Pod {
	t.Helper()
	ordinal, err := strconv.ParseInt(r["name"][strings.LastIndex(r["name"], "-")+1:], 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	found, guarded := strings.CutPrefix(r["trouble"], "guard: ")
	if found, _, _ = strings.Cut(found, "; "); !guarded {
		found = ""
	}
	pod := state.Pod{
		Name: r["name"], Found: found, Ordinal: int32(ordinal), UID: "pod-" + r["name"], Template: r["template"], Version: r["version"],
		Ready: r["ready"] == "yes", Terminating: r["terminating"] == "yes", Trouble: r["trouble"],
		Damage: r["damage"], NodeGone: r["node-gone"] == "yes", NodeStopped: r["node-stopped"] == "yes", SilentNode: r["silent-node"], NodeSilent: r["node-silent"] == "yes", Unclaimed: r["unclaimed"] == "yes",
		Created: ago(t, cmp.Or(r["created"], r["since"])), ReadySince: ago(t, r["since"]), RunsSince: told(t, r["runs"]), Ran: r["ready"] == "yes" || r["ran"] == "yes",
		Barred: r["barred"] == "yes", Reported: r["ready"] != "yes" && r["unreported"] != "yes", DownSince: told(t, r["down"]),
		Crashed: r["crashed"] == "yes", Unpulled: r["unpulled"] == "yes", Shut: r["shut"], ShutBy: iff(r["shut"] != "", "is cordoned"),
		Drained: r["drained"], DrainedBy: iff(r["drained"] != "", "is cordoned"),
	}
	pod.GoingSince, pod.LostNode, pod.Finalizers = told(t, r["going"]), r["lost-node"], r["finalizers"]
	since := ago(t, cmp.Or(r["damaged"], r["since"]))
	if pod.Damage != "" {
		pod.DamageSince = since
	}
	if pod.NodeGone {
		pod.NodeGoneSince = since
	}
	return pod
}

// told is the time that a cell tells, zero where it tells none.
func told(t *testing.T, cell string) time.Time {
	t.Helper()
	if cell == "" {
		return time.Time{}
	}
	return ago(t, cell)
}

// errorsOf are errors that a member reports, such as "alarm:NOSPACE".
func errorsOf(texts []string) []state.MemberError {
	var all []state.MemberError
	for _, text := range texts {
		_, kind, _ := strings.Cut(text, "alarm:")
		all = append(all, state.MemberError{Text: text, Alarm: strings.TrimSpace(kind)})
	}
	return all
}

// alarmsOf reads alarms such as "NOSPACE m1".
func alarmsOf(text string) []state.Alarm {
	var alarms []state.Alarm
	for _, a := range list(text) {
		kind, id, _ := strings.Cut(a, " ")
		alarms = append(alarms, state.Alarm{Kind: kind, MemberID: id})
	}
	return alarms
}

// round is one look. The columns leader and name hold names; IDs are those of
// the record, or the column id; "none" for a member that did not even say who it
// is. Sizes are in Mi.
func (a archive) round(t *testing.T, section string, record *state.Record) state.Round {
	t.Helper()
	s, rows := a.read(t, section)
	r := state.Round{
		Problem: s["problem"], ClusterID: s["cluster"], ClusterVersion: s["version"],
		Alarms: alarmsOf(s["alarms"]), Downgrading: s["downgrading"] != "", DowngradeTarget: s["downgrading"],
	}
	if r.ClusterID == "" && record.Formed() {
		r.ClusterID = record.ClusterID
	}
	ids := map[string]string{}
	for _, m := range rows {
		ids[m["name"]] = m["id"]
		switch {
		case m["id"] == "none":
			ids[m["name"]] = ""
		case m["id"] == "" && record != nil:
			ids[m["name"]] = record.Members[m["name"]]
		}
	}
	delete(ids, "") // who has no name is nobody's leader
	for _, m := range rows {
		applied := number[uint64](t, m, "applied", 0)
		r.Members = append(r.Members, state.Member{
			ID: cmp.Or(strings.TrimPrefix(m["id"], "none"), ids[m["name"]]), Name: m["name"], Version: m["version"], Leader: ids[m["leader"]],
			Term: number[uint64](t, m, "term", 7), AppliedIndex: applied, CommitIndex: number(t, m, "commit", applied),
			StorageVersion: m["storage"], Snapshots: number[int64](t, m, "saved", 0),
			Learner: m["learner"] == "yes", Denied: m["denied"] == "yes", Hash: number[uint32](t, m, "hash", 0), Problem: m["problem"],
			DBSize: number[int64](t, m, "db", 0) << 20, DBInUse: number[int64](t, m, "inuse", 0) << 20, Quota: number[int64](t, m, "quota", 0) << 20,
			Peers: peersOf(m), Revision: number[int64](t, m, "revision", 0), HashRevision: number[int64](t, m, "revision", 0), CompactRevision: number[int64](t, m, "compacted", 0), Errors: errorsOf(list(m["errors"])),
		})
	}
	return r
}

// peersOf is what the others know of a member: of one that does not answer, that it is
// apart, unless the row says something else.
func peersOf(m row) state.Peers {
	switch {
	case m["problem"] == "" || m["peers"] == "unknown":
		return state.PeersUnknown
	case m["peers"] != "":
		return state.Peers(m["peers"])
	}
	return state.PeersApart
}

// 19: the same input gives the same text, whatever the order of the pods.
func TestPlanIsStable(t *testing.T) {
	s := healthy(11)
	with(commit(newVersion), backedUp(time.Minute))(s)
	want := Make(s.Desired, s.Observed, noon).Text()
	if !strings.Contains(want, "restart orders-10 ") {
		t.Fatalf("no roll: %s", want)
	}
	for turn := range len(s.Observed.Pods) {
		o := s.Observed
		o.Pods = slices.Concat(s.Observed.Pods[turn:], s.Observed.Pods[:turn])
		slices.Reverse(o.Pods)
		for range 2 {
			if got := Make(s.Desired, o, noon).Text(); got != want {
				t.Fatalf("pods turned by %d:\n%s\nwant:\n%s", turn, got, want)
			}
		}
	}
}

// 19: a plan keeps its hands off what it was made from.
func TestMakeChangesNothing(t *testing.T) {
	s := healthy(3)
	with(commit(newVersion), backedUp(time.Minute))(s)
	before := fmt.Sprintf("%+v %+v %+v", s.Observed, *s.Observed.Record, *s.Observed.Set)
	Make(s.Desired, s.Observed, noon)
	if after := fmt.Sprintf("%+v %+v %+v", s.Observed, *s.Observed.Record, *s.Observed.Set); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}
