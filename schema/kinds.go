package schema

// object is what the four kinds have in common.
type object interface {
	meta() *Metadata
	// setDefaults fills what the author left out, with the safe choice.
	setDefaults()
	// validate says everything that is wrong with a defaulted object. The
	// problems name fields and carry no place.
	validate() []Problem
}

// newObject is an empty object of a kind, or nil for a kind that is not known.
func newObject(kind string) object {
	switch kind {
	case KindCluster:
		return &EtcdCluster{}
	case KindBackup:
		return &EtcdBackup{}
	case KindBackupSchedule:
		return &EtcdBackupSchedule{}
	case KindRestore:
		return &EtcdRestore{}
	}
	return nil
}

// Kinds are all kinds of the file format, in the order in which they are listed.
func Kinds() []string {
	return []string{KindCluster, KindBackup, KindBackupSchedule, KindRestore}
}

func (c *EtcdCluster) meta() *Metadata        { return &c.Metadata }
func (b *EtcdBackup) meta() *Metadata         { return &b.Metadata }
func (s *EtcdBackupSchedule) meta() *Metadata { return &s.Metadata }
func (r *EtcdRestore) meta() *Metadata        { return &r.Metadata }

func (c *EtcdCluster) setDefaults()        { Default(c) }
func (b *EtcdBackup) setDefaults()         { fill(&b.Metadata.Namespace, defaultNamespace) }
func (s *EtcdBackupSchedule) setDefaults() { defaultSchedule(s) }
func (r *EtcdRestore) setDefaults()        { defaultRestore(r) }

func (c *EtcdCluster) validate() []Problem        { return Validate(c) }
func (b *EtcdBackup) validate() []Problem         { return validateBackup(b) }
func (s *EtcdBackupSchedule) validate() []Problem { return validateSchedule(s) }
func (r *EtcdRestore) validate() []Problem        { return validateRestore(r) }
