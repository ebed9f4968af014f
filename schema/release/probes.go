package release

// Probes are the HTTP paths of the startup and the readiness probe of v. Startup
// asks whether the process serves at all; readiness may ask for a leader.
//
//	version               startup                     readiness
//	before 3.4.29         /health                     /health
//	3.5.0 to 3.5.10       /health?serializable=true   /health
//	3.4.29, 3.5.11, 3.6…  /livez                      /readyz
//
// Source: CHANGELOG-3.4.md v3.4.29, PR 17128; CHANGELOG-3.5.md v3.5.11, PR 17039.
// The serializable check exists from 3.5.3; 3.5.0 to 3.5.2 ignore the query, and
// like all of 3.4 their /health asks for a quorum.
func Probes(v Version) (startup, readiness string) {
	switch {
	case v.before(Version{3, 4, 29}):
		return "/health", "/health"
	case v.Minor == 5 && v.Major == 3 && v.Patch < 11:
		return "/health?serializable=true", "/health"
	default:
		return "/livez", "/readyz"
	}
}
