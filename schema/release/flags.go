package release

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Settings are the settings of an etcd process whose flags depend on its
// version.
type Settings struct {
	// QuotaBackendBytes is in bytes; 0 leaves etcd's default.
	QuotaBackendBytes int64
	// AutoCompactionMode is "periodic" or "revision"; "" leaves etcd's default.
	AutoCompactionMode string
	// AutoCompactionRetention is a duration or a number of revisions; "" leaves
	// etcd's default, which is no automatic compaction.
	AutoCompactionRetention string
	// SkipPeerSAN makes a member accept the certificate of a peer whose address
	// is not among its names.
	SkipPeerSAN bool
	// Options are further flags by name without dashes. The older and the newer
	// name of a flag mean the same, and override what quorate sets.
	Options map[string]string
}

// Flags renders settings as --name=value in the names that v knows, sorted. To
// what the settings say it adds what every member should have: the vote before
// an election, the structured log and the check of the data at start, each
// where v does not have it by default. A flag that v does not take is left out
// and is a Refuse, since etcd would not start with it. So is an unknown minor,
// since it is unknown which flags it has.
func Flags(v Version, s Settings) ([]string, []Finding) {
	if err := Known(v); err != nil {
		return nil, []Finding{refuse("%v", err)}
	}
	r := rendering{version: v, flags: map[string]setting{}, gates: map[string]setting{}}
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		r.want(name, s.Options[name])
	}
	r.wantSettings(s)
	r.wantDefaults()
	return r.render()
}

// initialCheck is the gate by which a member compares its data with that of its peers
// before it serves.
const initialCheck = "InitialCorruptCheck"

// ComparesAtStart reports whether a member of v with these options compares its data with
// that of each peer whenever it starts, and ends where they differ. quorate sets that, and
// an option may take it back. Measured: before 3.6 it asks no peer while it has saved no
// snapshot, for it does not know them yet (getPeerHashKVs of etcdserver/corrupt.go).
func ComparesAtStart(v Version, options map[string]string) bool {
	r := rendering{version: v, flags: map[string]setting{}, gates: map[string]setting{}}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		r.want(name, options[name])
	}
	r.wantDefaults()
	return !v.before(Version{3, 6, 0}) && r.gates[initialCheck].value == "true"
}

// setting is the value that a flag or gate should have, and the name by which it was
// asked for, so that a message speaks of what the user wrote.
type setting struct {
	value, writtenAs string
}

// rendering gathers settings under their newest names, and then
// spells them in the names of one version.
type rendering struct {
	version  Version
	flags    map[string]setting
	gates    map[string]setting
	findings []Finding
}

// want takes one flag under any of its names.
func (r *rendering) want(name, value string) {
	if name == featureGatesFlag {
		r.wantGates(value)
		return
	}
	if row, ok := gateOfFlag(name); ok {
		r.wantGate(row.Name, name, value)
		return
	}
	r.put(r.flags, newestName(name), setting{value: value, writtenAs: name})
}

// wantGates takes the list "Gate=true,Other=false".
func (r *rendering) wantGates(list string) {
	for _, item := range strings.Split(list, ",") {
		gate, value, ok := strings.Cut(strings.TrimSpace(item), "=")
		if !ok {
			r.refuse("feature-gates: write a list such as InitialCorruptCheck=true, not %s", quoted(item))
			continue
		}
		r.wantGate(gate, featureGatesFlag, value)
	}
}

// wantGate takes one feature gate, however it was written.
func (r *rendering) wantGate(gate, writtenAs, value string) {
	on, err := strconv.ParseBool(value)
	if err != nil {
		r.refuse("%s: write true or false, not %s", writtenAs, quoted(value))
		return
	}
	r.put(r.gates, gate, setting{value: strconv.FormatBool(on), writtenAs: writtenAs})
}

// put adds a setting. The same one under two names must have one value.
func (r *rendering) put(settings map[string]setting, key string, s setting) {
	if old, taken := settings[key]; taken && old.value != s.value {
		r.refuse("%s and %s are one setting with two values: keep one of them", old.writtenAs, s.writtenAs)
		return
	}
	settings[key] = s
}

// wantSettings takes the typed settings.
func (r *rendering) wantSettings(s Settings) {
	if s.QuotaBackendBytes > 0 {
		r.ours("quota-backend-bytes", strconv.FormatInt(s.QuotaBackendBytes, 10))
	}
	if s.AutoCompactionRetention != "" {
		r.wantCompaction(s.AutoCompactionMode, s.AutoCompactionRetention)
	}
	if s.SkipPeerSAN {
		r.ours("peer-skip-client-san-verification", "true")
	}
}

// wantCompaction sets the automatic compaction. 3.2 has one mode only, and
// counts in whole hours.
func (r *rendering) wantCompaction(mode, retention string) {
	if KnownFlag(r.version, "auto-compaction-mode") {
		if mode != "" {
			r.ours("auto-compaction-mode", mode)
		}
		r.ours("auto-compaction-retention", retention)
		return
	}
	hours, ok := wholeHours(retention)
	if mode == "revision" || !ok {
		r.refuse("%s compacts by whole hours only: write a retention such as 8h, with mode periodic", r.version)
		return
	}
	r.ours("auto-compaction-retention", strconv.Itoa(hours))
}

// wholeHours reads "8" and "8h" as 8.
func wholeHours(retention string) (int, bool) {
	if n, err := strconv.Atoi(retention); err == nil {
		return n, n >= 0
	}
	d, err := time.ParseDuration(retention)
	return int(d / time.Hour), err == nil && d >= 0 && d%time.Hour == 0
}

// wantDefaults sets what every member should have.
func (r *rendering) wantDefaults() {
	if r.version.before(Version{3, 5, 0}) && KnownFlag(r.version, "pre-vote") {
		r.ours("pre-vote", "true")
		r.ours("logger", "zap")
	}
	// A check that this version cannot make is not worth a refusal.
	if _, _, err := spellGate(r.version, initialCheck); err == nil {
		if _, taken := r.gates[initialCheck]; !taken {
			r.gates[initialCheck] = setting{value: "true", writtenAs: initialCheck}
		}
	}
}

// ours adds quorate's own value, which an option overrides.
func (r *rendering) ours(name, value string) {
	if _, taken := r.flags[name]; !taken {
		r.flags[name] = setting{value: value, writtenAs: name}
	}
}

// refuse notes a finding that forbids.
func (r *rendering) refuse(format string, args ...any) {
	r.findings = append(r.findings, refuse(format, args...))
}

// render writes every setting with the names of the version.
func (r *rendering) render() ([]string, []Finding) {
	var out, gates []string
	r.refuseClashes()
	for _, name := range slices.Sorted(maps.Keys(r.flags)) {
		s := r.flags[name]
		spelled, err := spellFlag(r.version, name, s)
		if err != nil {
			r.refuse("%v", err)
			continue
		}
		out = append(out, "--"+spelled+"="+s.value)
	}
	for _, gate := range slices.Sorted(maps.Keys(r.gates)) {
		value := r.gates[gate].value
		spelled, isGate, err := spellGate(r.version, gate)
		switch {
		case err != nil:
			r.refuse("%v", err)
		case isGate:
			gates = append(gates, spelled+"="+value)
		default:
			out = append(out, "--"+spelled+"="+value)
		}
	}
	if len(gates) > 0 {
		out = append(out, "--"+featureGatesFlag+"="+strings.Join(gates, ","))
	}
	slices.Sort(out)
	return out, r.findings
}

// refuseClashes notes flags that the version takes, but not together.
func (r *rendering) refuseClashes() {
	for _, row := range clashRows() {
		_, hasOld := r.flags[row.old]
		_, hasKept := r.flags[row.kept]
		if hasOld && hasKept && KnownFlag(r.version, row.old) && KnownFlag(r.version, row.kept) {
			r.refuse("%s and %s must not be set both: keep %s", row.old, row.kept, row.kept)
		}
	}
}

// spellFlag is the name that v has for a flag given by its newest name. A value
// of several lines would end up as several in whatever shows the command line,
// and one with a NUL cannot be an argument at all.
func spellFlag(v Version, name string, s setting) (string, error) {
	for _, row := range valueRows() {
		if row.name == name && row.value == s.value && !v.before(row.goneIn) {
			return "", fmt.Errorf("%s=%s is not taken from etcd %s on: %s", s.writtenAs, s.value, row.goneIn.Line(), row.instead)
		}
	}
	for _, row := range addedValueRows() {
		if since, known := safeFrom(row.since, v); row.name == name && row.value == s.value && !known {
			return "", fmt.Errorf("etcd %s does not take %s=%s, which is new in %s: use that or later first", v, s.writtenAs, s.value, since)
		}
	}
	for _, candidate := range []string{name, experimental + name} {
		switch {
		case !KnownFlag(v, candidate):
		case strings.ContainsAny(s.value, "\n\r\x00"):
			return "", fmt.Errorf("%s: the value must be one line, and is %s", candidate, quoted(s.value))
		default:
			return candidate, nil
		}
	}
	return "", CheckFlag(v, s.writtenAs)
}
