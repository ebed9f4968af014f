package schema

// Measured is what the last pass has measured of a cluster. Unlike a Status it ticks: it
// is for who looks now, and is written nowhere.
type Measured struct {
	// Members are the databases of the members that answered, in the order of their
	// ordinals.
	Members []MemberDatabase `json:"members"`
}

// MemberDatabase is how large the database of one member is, in bytes.
type MemberDatabase struct {
	Name string `json:"name"`
	// Size is that of the file, InUse what the data needs of it: the rest is given back by
	// a defragmentation. At Quota the member refuses writes.
	Size  int64 `json:"size"`
	InUse int64 `json:"inUse"`
	Quota int64 `json:"quota"`
}
