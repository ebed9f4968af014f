package generate

// form is how a text is written. The patterns are in the common part of the
// regular expressions of Go and of JavaScript, since editors and CI tools use
// one or the other.
type form struct {
	// pattern of a text, or of the values of a map.
	pattern string
	// keys and notKeys are patterns of the keys of a map.
	keys, notKeys string
	// longest is the number of characters, or 0.
	longest int64
	// remedy is what an editor shows where the pattern does not match.
	remedy string
}

// Parts of the patterns.
const (
	label     = `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
	subdomain = `^` + label + `(\.` + label + `)*$`
	imagePath = `[a-z0-9]([._a-z0-9-]*[a-z0-9])?`
	duration  = `([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)`
	word      = `[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?`
	qualified = `^(` + label + `(\.` + label + `)*/)?` + word + `$`
	named     = `@(yearly|annually|monthly|weekly|daily|midnight|hourly)`
	checkHost = `(\[[0-9A-Fa-f:.]+\]|[^\s/@?#:\[\]]+)(:[0-9]+)?`
	five      = `[^\s@=]+(\s+[^\s@=]+){4}`
)

// forms are all forms by the name that struct tags give them. Where a pattern
// cannot say everything, as for versions that there are, quorate validate does.
func forms() map[string]form {
	own := `^([^/]*\.)?quorate\.dev/`
	ours := `^([^/]*\.)?(quorate\.dev|app\.kubernetes\.io)/`
	return map[string]form{
		"version":       {pattern: `^3\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$`, remedy: `Write an etcd release as MAJOR.MINOR.PATCH in quotes, such as "3.6.16".`},
		"label":         {pattern: `^` + label + `$`, longest: 63, remedy: "Use lower-case letters, digits and dashes, with a letter or digit at both ends, at most 63."},
		"subdomain":     {pattern: subdomain, longest: 253, remedy: "Use lower-case letters, digits, dashes and dots, with a letter or digit at both ends."},
		"repository":    {pattern: `^(` + `[A-Za-z0-9]([._A-Za-z0-9-]*[A-Za-z0-9])?(:[0-9]+)?/)?` + imagePath + `(/` + imagePath + `)*$`, longest: 255, remedy: "Write registry/path in lower case, without tag and digest, such as quay.io/coreos/etcd."},
		"digest":        {pattern: `^sha256:[0-9a-f]{64}$`, remedy: "Write sha256: and 64 hexadecimal digits in lower case."},
		"sha256":        {pattern: `^[0-9a-f]{64}$`, remedy: "Write the 64 hexadecimal digits that the hold names, in quotes."},
		"fingerprint":   {pattern: `^SHA256:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]$`, remedy: "Write SHA256: and the 43 characters that the hold names, in quotes."},
		"retention":     {pattern: `^([0-9]+|(` + duration + `)+)$`, remedy: `Write a duration such as "8h", or a number of revisions in quotes.`},
		"schedule":      {pattern: `^\s*(` + five + `|` + named + `|@every\s+(` + duration + `)+)\s*$`, remedy: `Write five fields of crontab syntax such as "0 */6 * * *", or @daily, or "@every 1h".`},
		"opening":       {pattern: `^\s*(` + five + `|` + named + `)\s*$`, remedy: `Write five fields of crontab syntax, such as "0 2 * * 6".`},
		"timeZone":      {pattern: `^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$`, remedy: `Write an IANA name such as "Europe/Berlin".`},
		"template":      {pattern: `^(s3|gs|azblob|file)://[^?#]*\{\{-?\s*\.UID\s*-?\}\}[^#]*$`, longest: 2048, remedy: "Write s3://, gs://, azblob:// or file:/// and a path that contains {{ .UID }}."},
		"objectURL":     {pattern: `^(s3|gs|azblob|file)://([^#{]|\{[^#{])+$`, longest: 2048, remedy: "Write s3://, gs://, azblob:// or file:/// and the path of one backup."},
		"clusterURL":    {pattern: `^https?://(\[[0-9A-Fa-f:.]+\]|[^\s/@?#:]+):[0-9]+/?$`, remedy: "Write a client URL such as https://etcd.example.com:2379."},
		"checkURL":      {pattern: `^https?://` + checkHost + `(/[^\s#]*)?(\?[^\s#]*)?$`, longest: 2048, remedy: "Write a URL such as https://orders.example.com/healthz, without a user, a password and #."},
		"prometheusURL": {pattern: `^https?://` + checkHost + `(/[^\s#?]*)?$`, longest: 2048, remedy: "Write the URL of a Prometheus, such as http://prometheus.monitoring.svc:9090."},
		"word":          {pattern: `^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`, remedy: `Write a word such as "2026-12".`},
		"clusterID":     {pattern: `^[1-9a-f][0-9a-f]{0,15}$`, remedy: `Write the ID in hexadecimal and in quotes, such as "c0db8ad50b63ff47".`},
		"recipient":     {pattern: `^age1[02-9ac-hj-np-z]{58}$`, remedy: "Write the public key of an age key pair, age1…."},
		"authName":      {pattern: `^[!-~]([ -~]*[!-~])?$`, longest: 64, remedy: "Use 1 to 64 printable ASCII characters, without a space at either end."},
		"secretKey":     {pattern: `^[-._A-Za-z0-9]+$`, longest: 253, remedy: "Use letters, digits, dashes, dots and underscores."},
		"owner":         {pattern: `^[^\s#][^\n\r]*#` + label + `/[1-9][0-9]*$`, longest: 1024, remedy: "Copy the owner from the hold, such as https://git.example.com/etcd.git@main:clusters#default/1."},
		// Maps.
		"resources":   {keys: `^(cpu|memory|ephemeral-storage|hugepages-.+|[^/]+/.+)$`, remedy: "Write cpu, memory or ephemeral-storage."},
		"options":     {pattern: `^[^\n\r\x00]+$`, keys: `^[a-z0-9][a-z0-9.-]*$`, remedy: "Write flags by name, in lower case, without dashes before it, and their values in quotes."},
		"labels":      {pattern: `^(` + word + `)?$`, keys: qualified, notKeys: ours, remedy: "Use at most 63 letters, digits, dashes, dots and underscores; the prefixes quorate.dev/ and app.kubernetes.io/ are reserved."},
		"annotations": {keys: qualified, notKeys: own, remedy: "Write name or prefix/name, the name at most 63 characters; the prefix quorate.dev/ is reserved."},
		"selector":    {pattern: `^(` + word + `)?$`, keys: qualified, remedy: "Use at most 63 letters, digits, dashes, dots and underscores."},
	}
}

// quantityForm and durationForm are those of the Go types.
func quantityForm() form {
	return form{pattern: `^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$`, remedy: "Write a quantity such as 8Gi or 500m."}
}

func durationForm() form {
	return form{pattern: `^\+?(0|(` + duration + `)+)$`, remedy: `Write a duration such as "10s" or "8h".`}
}
