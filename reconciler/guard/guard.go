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

// markerName is the file that says whose volume it is.
const markerName = "quorate.json"

// volumeMarker says to which member of which incarnation a volume belongs.
type volumeMarker struct {
	Token  string `json:"token"`
	Member string `json:"member"`
}

// volumeState is what the guard found on a volume.
type volumeState struct {
	// marker is nil when there is none.
	marker *volumeMarker
	// hasLog says whether etcd's write-ahead log has a file, which is what etcd
	// itself takes for "this member has started before".
	hasLog bool
	// strangers are the other names at the top of the volume, etcd's data
	// directory among them when it holds anything.
	strangers []string
}

// Check decides whether a member may start on the volume that it was given. It
// runs in the pod before etcd, asks nobody, and returns nil or an error whose
// one sentence is meant for the pod's status. On a new volume it leaves its
// marker. Running it again changes nothing.
func Check(recordPath, volume, member string) error {
	text, err := os.ReadFile(recordPath)
	if err != nil {
		return fmt.Errorf("the cluster's record cannot be read, so %s does not start; restore the record and the pod goes on by itself: %w", member, err)
	}
	core, err := ParseRecord(text)
	if err != nil {
		return fmt.Errorf("the cluster's record is damaged, so %s does not start; mend the record and the pod goes on by itself: %w", member, err)
	}
	state, err := inspectVolume(volume)
	if err != nil {
		return fmt.Errorf("the volume of %s cannot be examined, so it does not start: %w", member, err)
	}
	mark, err := decideStart(core, state, member)
	if err != nil || !mark {
		return err
	}
	if err := writeMarker(volume, volumeMarker{Token: core.Token, Member: member}); err != nil {
		return fmt.Errorf("mark the volume of %s as its own, before anything is written to it: %w", member, err)
	}
	return nil
}

// decideStart is the guard's table: nil lets etcd start, mark asks for a marker
// first.
//
//	marker        data   record       answer
//	any           any    formed, without this member   refuse
//	absent        none   not formed   mark, start
//	absent        none   formed       refuse: the member had joined, its data is lost
//	absent        some   any          refuse: foreign data
//	another's     any    any          refuse: foreign volume
//	own           some   any          start
//	own           none   not formed   start: nothing was promised yet
//	own           none   formed       refuse: wiped
//
// A member that forgot its log may have voted for what it no longer knows; under
// its old ID it could help an older history to win. So it comes back as a new
// member, with a new ID.
func decideStart(core Record, v volumeState, member string) (mark bool, err error) {
	formed := *core.ClusterID != ""
	if _, listed := (*core.Members)[member]; formed && !listed {
		return false, fmt.Errorf("%s is not a member of cluster %s according to its record; it does not start until quorate has added it", member, *core.ClusterID)
	}
	switch {
	case v.marker == nil && len(v.strangers) > 0:
		return false, fmt.Errorf("the volume of %s holds foreign data (%s) and no %s; empty the volume, or put back the one that belongs to this member", member, strings.Join(v.strangers, ", "), markerName)
	case v.marker == nil && formed:
		return false, fmt.Errorf("the volume of %s is empty although this member had joined; it does not start on lost data and waits to be replaced as a new member", member)
	case v.marker == nil:
		return true, nil
	case v.marker.Token != core.Token || v.marker.Member != member:
		return false, fmt.Errorf("the volume of %s belongs to member %s of cluster token %s, and this is cluster token %s; put back the volume that belongs to this member", member, v.marker.Member, v.marker.Token, core.Token)
	case formed && !v.hasLog:
		return false, fmt.Errorf("the data of %s was wiped although this member had joined; it does not start on lost data and waits to be replaced as a new member", member)
	}
	return false, nil
}

// inspectVolume reads what decideStart needs. Whatever cannot be read is an
// error: unreadable must not look like empty.
func inspectVolume(volume string) (volumeState, error) {
	var v volumeState
	if _, err := os.Stat(volume); err != nil {
		return v, err
	}
	var err error
	if v.marker, err = readMarker(volume); err != nil {
		return v, err
	}
	if v.strangers, err = findStrangers(volume); err != nil {
		return v, err
	}
	logFiles, err := listDir(filepath.Join(volume, DataDir, "member", "wal"))
	v.hasLog = len(logFiles) > 0
	return v, err
}

// readMarker returns nil when there is no marker, and an error for a damaged
// one.
func readMarker(volume string) (*volumeMarker, error) {
	text, err := os.ReadFile(filepath.Join(volume, markerName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var m volumeMarker
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", markerName, err)
	}
	if m.Token == "" || m.Member == "" {
		return nil, fmt.Errorf("%s is damaged: it names no token or no member", markerName)
	}
	return &m, nil
}

// findStrangers lists what stands on the volume beside the marker. A file system
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
		case "lost+found", markerName, markerName + ".tmp":
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
	final := filepath.Join(volume, markerName)
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
