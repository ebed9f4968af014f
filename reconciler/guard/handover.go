package guard

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Handover makes a volume of one incarnation of a cluster a volume of the next:
// a recovery gives the cluster a new token. What the earlier one left is kept on
// the volume, in a directory beside the data, and never deleted.
//
// A crash between any two steps is made good by running it again:
//
//	marker   data  kept  prepared   what comes next
//	former   yes   no    any        the data is set aside: data → kept
//	former   no    no    any        nothing was there: an empty kept
//	former   no    yes   yes        the new data takes its place: prepared → data
//	former   yes   yes   no         it has; the new marker
//	former   no    yes   not asked  a new member begins empty; the new marker
//	new      any   any   any        done
//	none     no    no    no         an empty volume: the former marker first
//	other                           refused
type Handover struct {
	// Volume is the directory of the volume, Member the name of its member.
	Volume, Member string
	// Former is the token of the incarnation whose volume it may be, and Token
	// that of the next one.
	Former, Token string
	// Prepared says that new data is made before Finish, in the directory
	// PreparedDir. Without, the member begins empty.
	Prepared bool
}

// KeptDir is where the data of the former incarnation is kept.
func (h Handover) KeptDir() string { return filepath.Join(h.Volume, DataDir+"-"+h.Former) }

// PreparedDir is where new data is put, whole, before it takes its place.
func (h Handover) PreparedDir() string { return filepath.Join(h.Volume, "prepared-"+h.Token) }

// DataPath is etcd's data directory.
func (h Handover) DataPath() string { return filepath.Join(h.Volume, DataDir) }

// Begin reports whether the handover is done already. It refuses a volume that is
// neither the member's own, of one of the two incarnations, nor empty.
func (h Handover) Begin() (done bool, err error) {
	m, err := readMarker(h.Volume)
	strangers, errList := findStrangers(h.Volume)
	switch {
	case err != nil || errList != nil:
		return false, fmt.Errorf("the volume of %s cannot be examined: %w", h.Member, errors.Join(err, errList))
	case m == nil && len(strangers) > 0:
		return false, fmt.Errorf("the volume of %s holds foreign data (%s) and no %s; nothing on it is touched", h.Member, strings.Join(strangers, ", "), MarkerFile)
	case m == nil:
		return false, writeMarker(h.Volume, volumeMarker{Token: h.Former, Member: h.Member})
	case m.Member != h.Member || (m.Token != h.Former && m.Token != h.Token):
		return false, fmt.Errorf("the volume belongs to member %s of cluster token %s, not to %s of %s; nothing on it is touched", m.Member, m.Token, h.Member, h.Former)
	}
	return m.Token == h.Token, nil
}

// Finish hands the volume over. Running it again after a crash continues where it
// was; running it again after its end changes nothing.
func (h Handover) Finish() error {
	done, err := h.Begin()
	if done || err != nil {
		return err
	}
	for _, step := range []func() error{h.setAside, h.putInPlace} {
		if err := step(); err != nil {
			return fmt.Errorf("hand the volume of %s over: %w", h.Member, err)
		}
	}
	if err := writeMarker(h.Volume, volumeMarker{Token: h.Token, Member: h.Member}); err != nil {
		return fmt.Errorf("mark the volume of %s as that of the recovered cluster: %w", h.Member, err)
	}
	return nil
}

// setAside moves the former data aside, or leaves an empty directory in its
// place, which says that there was none.
func (h Handover) setAside() error {
	kept, err := exists(h.KeptDir())
	if err != nil || kept {
		return err
	}
	if ready, err := exists(h.PreparedDir()); err != nil || (h.Prepared && !ready) {
		return cmp.Or(err, errors.New("no new data was prepared"))
	}
	data, err := listDir(h.DataPath())
	if err != nil {
		return err
	}
	if len(data) > 0 {
		if err := os.Rename(h.DataPath(), h.KeptDir()); err != nil {
			return err
		}
	} else if err := os.Mkdir(h.KeptDir(), 0o700); err != nil {
		return err
	}
	return syncDir(h.Volume)
}

// putInPlace lets what was prepared be the data.
func (h Handover) putInPlace() error {
	data, err := listDir(h.DataPath())
	if err != nil {
		return err
	}
	prepared, err := exists(h.PreparedDir())
	switch {
	case err != nil:
		return err
	case prepared && len(data) > 0, !h.Prepared && len(data) > 0:
		return fmt.Errorf("there is data of both incarnations: %s and %s", h.DataPath(), h.KeptDir())
	case h.Prepared && !prepared && len(data) == 0:
		return errors.New("the new data is gone")
	case !prepared:
		return nil
	}
	// An empty directory is in the way of a rename on some systems.
	if err := os.Remove(h.DataPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(h.PreparedDir(), h.DataPath()); err != nil {
		return err
	}
	return syncDir(h.Volume)
}

// takeOver makes the volume of a lost incarnation that of a member which joins
// the recovered cluster. Every other is left unchanged.
func (r Record) takeOver(volume, member string) error {
	m, _ := readMarker(volume) // the next reader of the volume meets an error again
	if m == nil || m.Member != member || !r.lost(m.Token) {
		return nil
	}
	if !r.expects(member) {
		return refuse(ExitNotAMember, "the volume of %s holds data of a lost cluster, which is kept; it does not start until quorate has added it to cluster %s", member, *r.ClusterID)
	}
	return Handover{Volume: volume, Member: member, Former: m.Token, Token: r.Token}.Finish()
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
