package schema

// Measured is what the last pass has measured of a cluster. Unlike a Status it ticks: it
// is for who looks now, and is written nowhere.
type Measured struct {
	// Members are the databases of the members that answered, in the order of their
	// ordinals.
	Members []MemberDatabase `json:"members"`
	// Rollout is how far the one under way is; absent where there is none.
	Rollout *Rollout `json:"rollout,omitempty"`
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

// Rollout is how far the restart of all members onto what Git says is.
type Rollout struct {
	// Updated counts the members that run what Git says, Members all that there are.
	Updated int `json:"updated"`
	Members int `json:"members"`
}
