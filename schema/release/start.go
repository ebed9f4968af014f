package release

// StartsOn reports whether a release starts on the data of another: one of the same
// minor, or of the one before. A text that is no release starts on nothing.
func StartsOn(data, version string) bool {
	from, errFrom := Parse(data)
	to, errTo := Parse(version)
	return errFrom == nil && errTo == nil && to.StartsOn(from)
}

// StartsOn reports whether v starts on the data of another release.
func (v Version) StartsOn(data Version) bool {
	return v.Major == data.Major && (v.Minor == data.Minor || v.Minor == data.Minor+1)
}
