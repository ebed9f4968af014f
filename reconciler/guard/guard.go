// Package guard decides in a member's pod whether etcd may start on the volume
// that the pod was given. It stands alone, on the standard library, because it
// runs before every start of every member: its program must be small, quick, and
// never depend on the daemon.
package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// DataDir is the name of etcd's data directory on the volume.
const DataDir = "data"

// MarkerFile is the name of the file that names the volume's owner.
const MarkerFile = "quorate.json"

// The exit codes of the guard's program, by which the daemon tells refusals
// apart. They stay the same in every version.
const (
	// ExitUndecided means that the record or the volume could not be read.
	ExitUndecided = 1
	// ExitEmpty means that the data of a member that had joined is gone.
	ExitEmpty = 3
	// ExitForeign means that the data is another member's, another cluster's, or no
	// etcd's at all. A guard that knows no ExitOutdated says this for that, too.
	ExitForeign = 4
	// ExitCorrupt means that the data of this member cannot be read as what it
	// should be.
	ExitCorrupt = 5
	// ExitNotAMember means that the record does not know this member, or not yet.
	ExitNotAMember = 6
	// ExitOutdated means that the data is what an earlier member of this name has
	// left in this very cluster.
	ExitOutdated = 7
	// ExitOlder means that the data is this member's own, as it was earlier: an older snapshot
	// of its volume was put back.
	ExitOlder = 8
)

// refusal is a reason not to start that the guard is sure of.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return r.text }

func refuse(code int, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// ExitCode is the code with which the guard's program ends for what Check
// returned: 0 for nil.
func ExitCode(err error) int {
	var r *refusal
	switch {
	case err == nil:
		return 0
	case errors.As(err, &r):
		return r.code
	}
	return ExitUndecided
}

// volumeMarker says to which member of which incarnation a volume belongs.
type volumeMarker struct {
	Token  string `json:"token"`
	Member string `json:"member"`
	// ID of the member in hexadecimal, where it was known before its first start.
	ID string `json:"id,omitempty"`
	// Revision of the record under which the volume was marked.
	Revision int64 `json:"revision,omitempty"`
}

// volumeState is what the guard found on a volume.
type volumeState struct {
	// marker is nil when there is none.
	marker *volumeMarker
	// log tells which member wrote etcd's write-ahead log, nil when there is no log, which
	// is what etcd itself takes for "this member has not started before".
	log *identity
	// end is how far that log goes.
	end extent
	// damage is why the marker or the log cannot be read as what it should be, nil
	// for nothing. What is damaged is missing above.
	damage error
	// data reports whether etcd's data directory holds anything.
	data bool
	// strangers are the other names at the top of the volume, etcd's data
	// directory among them when it holds anything.
	strangers []string
}

// Check decides whether a member may start on the volume that it was given. It
// runs in the pod before etcd, asks no server, and returns nil or an error whose
// one sentence is meant for the pod's status; see ExitCode. On a new volume it
// leaves its marker. Running it again changes nothing.
func Check(recordPath, volume, member string) error {
	text, err := os.ReadFile(recordPath)
	if err != nil {
		return fmt.Errorf("the cluster's record cannot be read, so %s does not start; restore the record and the pod continues: %w", member, err)
	}
	core, err := ParseRecord(text)
	if err != nil {
		return fmt.Errorf("the cluster's record is damaged, so %s does not start; fix the record and the pod continues: %w", member, err)
	}
	if core.stopped() {
		return refuse(ExitNotAMember, "%s; %s does not start meanwhile", core.way(), member)
	}
	if err := core.takeOver(volume, member); err != nil {
		return err
	}
	state, err := inspectVolume(volume)
	if err != nil {
		return fmt.Errorf("the volume of %s cannot be examined, so it does not start: %w", member, err)
	}
	mark, err := decideStart(core, state, member)
	if mark == nil { // as with every refusal
		return err
	}
	if err := writeMarker(volume, *mark); err != nil {
		return fmt.Errorf("mark the volume of %s as its own, before anything is written to it: %w", member, err)
	}
	return nil
}

// decideStart is the guard's table: no error lets etcd start, after the marker
// was written where one is returned.
//
//	marker     data     record                        answer
//	absent     none     not formed                    mark, start
//	absent     none     formed, member                refuse: its data is lost
//	absent     none     formed, joining               mark, start
//	absent     none     formed, unknown               refuse: not a member (yet)
//	absent     some     any                           refuse: foreign data
//	another's  any      any                           refuse: foreign volume
//	damaged    own log  formed                        refuse: corrupt
//	damaged    else     any                           refuse: foreign data
//	own        damaged  any                           refuse: corrupt
//	own        no log   not formed                    start: nothing was promised yet
//	own        no log   formed, member                refuse: wiped
//	own        no log   formed, joining               start: it has not started before
//	own        no log   joined under another ID       refuse: outdated
//	own        log      not formed                    start
//	own        log      formed, names the log's ID    start
//	own        log      notes that it went further    refuse: older
//	own        log      older than the marker         start
//	own        log      of another cluster or member  refuse: foreign data
//	own        log      of an ID that is unknown       refuse: outdated
//
// A member that forgot its log may have voted for what it no longer knows; under
// its old ID it could help an older history to win. So it comes back as a new
// member, with a new ID. A joining member has not voted yet: until it may have
// been promoted, its empty volume is a beginning and no loss.
//
// What is empty, corrupt, outdated or older is this member's own, and quorate may delete
// it to repair the member. Foreign is whatever may be the only copy of some data: where
// the origin is not beyond doubt, it counts as foreign.
func decideStart(core Record, v volumeState, member string) (mark *volumeMarker, err error) {
	own := &volumeMarker{Token: core.Token, Member: member}
	switch {
	case v.marker != nil && (v.marker.Token != core.Token || v.marker.Member != member):
		return nil, refuse(ExitForeign, "the volume of %s belongs to member %s of cluster token %s, and this is member %s of cluster token %s; put back the volume that belongs to this member", member, v.marker.Member, v.marker.Token, member, core.Token)
	case v.damage != nil && (v.marker != nil || core.ownsLog(v.log, member)):
		return nil, refuse(ExitCorrupt, "the data of %s is damaged: %s", member, v.damage)
	case v.damage != nil:
		return nil, refuse(ExitForeign, "the volume of %s does not name its owner (%s), and this is %s; put back the volume that belongs to this member", member, v.damage, core.name())
	case v.marker == nil && len(v.strangers) > 0:
		return nil, refuse(ExitForeign, "the volume of %s holds foreign data (%s) and no %s%s, and this is %s; empty the volume, or put back the one that belongs to this member", member, strings.Join(v.strangers, ", "), MarkerFile, v.log.named(), core.name())
	case !core.formed() && v.marker == nil:
		return own, nil
	case !core.formed():
		return nil, nil
	case v.log != nil:
		return nil, decideLog(core, v, member)
	case !core.expects(member):
		return nil, refuseEmpty(core, v, member)
	}
	own.ID, own.Revision = core.Joining.ID, core.Revision
	switch {
	case !v.data: // nor is there any without a marker
		return own, nil
	case v.marker.ID != own.ID:
		return nil, refuse(ExitOutdated, "the volume of %s holds what an earlier member of that name left behind, and it is member %s now; it does not start on old data, and waits for a new volume", member, own.ID)
	}
	return nil, nil
}

// refuseEmpty returns why a member of a cluster that has formed does not start
// without a log.
func refuseEmpty(core Record, v volumeState, member string) error {
	_, listed := (*core.Members)[member]
	switch {
	case !listed && (!core.joins(member) || !core.Joining.Promoting):
		return refuse(ExitNotAMember, "%s is not a member of cluster %s according to its record; it does not start until quorate has added it", member, *core.ClusterID)
	case v.marker == nil:
		return refuse(ExitEmpty, "the volume of %s is empty although this member had joined; it does not start on lost data and waits to be replaced as a new member", member)
	}
	return refuse(ExitEmpty, "the data of %s was wiped although this member had joined; it does not start on lost data and waits to be replaced as a new member", member)
}

// decideLog decides about a log in a cluster that has formed: it must be that of
// the member's present ID. A record can be older than the volume, since the pod's
// copy of it lags behind; what let the member start before still holds then. An ID
// that another member has now is that member's data, whatever the marker says.
func decideLog(core Record, v volumeState, member string) error {
	id := v.log.member
	switch {
	case !sameID(v.log.cluster, *core.ClusterID):
		return refuse(ExitForeign, "the volume of %s holds data of cluster %x, and this is cluster %s; put back the volume that belongs to this member", member, v.log.cluster, *core.ClusterID)
	case sameID(id, (*core.Members)[member]):
		return core.refuseOlder(v, member)
	case core.joins(member) && sameID(id, core.Joining.ID):
		return nil
	case sameID(id, v.marker.ID) && v.marker.Revision > core.Revision:
		return nil
	case !core.ownsLog(v.log, member):
		return refuse(ExitForeign, "the volume of %s holds data of member %x, which is another member of cluster %s now; put back the volume that belongs to this member", member, id, *core.ClusterID)
	}
	return refuse(ExitOutdated, "the volume of %s holds data of member %x, which the record does not know any more; it does not start on old data, and waits for a new volume", member, id)
}

// refuseOlder returns why the log of a member's own does not start where it ends before what
// was noted of it. The entries that it lacks were acknowledged, and with them its votes: a
// quorum that counts on it could choose a history without them.
func (r Record) refuseOlder(v volumeState, member string) error {
	floor := r.Floors[member]
	if !sameID(v.log.member, floor.ID) || v.end.reaches(floor) {
		return nil
	}
	return refuse(ExitOlder, "the volume of %s is older than what this member had written, as if a snapshot was put back: its log ends at term %d and index %d, and it had come to term %d and index %d; it does not start on forgotten data, and waits for its newer volume, or to be replaced as a new member",
		member, v.end.term, v.end.index, floor.Term, floor.Index)
}

// inspectVolume reads what decideStart needs. Whatever cannot be read is an
// error: unreadable must not pass for empty. What was read and makes no sense is
// damage: whether it is this member's is decided by the rest.
func inspectVolume(volume string) (volumeState, error) {
	var v volumeState
	if _, err := os.Stat(volume); err != nil {
		return v, err
	}
	var err error
	if v.marker, err = readMarker(volume); err != nil && !v.damagedBy(err) {
		return v, err
	}
	if v.strangers, err = findStrangers(volume); err != nil {
		return v, err
	}
	inside, err := listDir(filepath.Join(volume, DataDir))
	if err != nil {
		return v, err
	}
	v.data = len(inside) > 0
	v.log, v.end, err = readLog(filepath.Join(volume, DataDir, "member", "wal"))
	if v.damagedBy(err) {
		err = nil
	}
	return v, err
}

// damagedBy notes an error that is damage, and reports whether it is.
func (v *volumeState) damagedBy(err error) bool {
	if !errors.Is(err, errCorrupt) {
		return false
	}
	if v.damage == nil { // one sentence, one cause
		v.damage = err
	}
	return true
}

// readMarker returns nil when there is no marker, and an error for a damaged
// one.
func readMarker(volume string) (*volumeMarker, error) {
	text, err := os.ReadFile(filepath.Join(volume, MarkerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var m volumeMarker
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s %w: %w", MarkerFile, errCorrupt, err)
	}
	if m.Token == "" || m.Member == "" {
		return nil, fmt.Errorf("%s %w: it names no token or no member", MarkerFile, errCorrupt)
	}
	return &m, nil
}

// findStrangers lists what is on the volume besides the marker. A file system
// brings lost+found along; a half-written marker is the guard's own; an empty
// data directory holds nothing.
func findStrangers(volume string) ([]string, error) {
	names, err := listDir(volume)
	if err != nil {
		return nil, err
	}
	var strangers []string
	for _, name := range names {
		switch name {
		case "lost+found", MarkerFile, MarkerFile + ".tmp":
			continue
		case DataDir:
			inside, err := listDir(filepath.Join(volume, name))
			if err != nil {
				return nil, err
			}
			if len(inside) == 0 {
				continue
			}
		}
		strangers = append(strangers, name)
	}
	return strangers, nil
}

// listDir lists the names in a directory, none when it does not exist.
func listDir(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// writeMarker puts the marker down so that a crash leaves either the whole of it
// or nothing.
func writeMarker(volume string, m volumeMarker) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	final := filepath.Join(volume, MarkerFile)
	if err := writeSynced(final+".tmp", append(text, '\n')); err != nil {
		return err
	}
	if err := os.Rename(final+".tmp", final); err != nil {
		return err
	}
	return syncDir(volume)
}

func writeSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir makes the rename itself survive a power cut.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
