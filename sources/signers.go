package sources

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// signer is a line of allowed_signers, or of authorized_keys: an SSH key that may sign
// commits and tags, with the limits that the line sets.
type signer struct {
	key ssh.PublicKey
	// names are whose key it is, as the line has it; "" where it names nobody.
	names string
	// other says that the key is for signatures of something else than commits and tags.
	other bool
	// after and before are the first and the last moment at which the key counts; zero for
	// no limit.
	after, before time.Time
}

// namespace is what Git signs commits and tags for.
const namespace = "git"

// parseSigner reads a line. A limit that cannot be kept is an error: to leave it out
// would trust more than the line does.
func parseSigner(line string) (signer, error) {
	key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
	names := ""
	if err != nil || len(options) > 0 {
		var rest string
		if names, rest, err = cutNames(line); err != nil {
			return signer{}, err
		}
		key, _, options, _, err = ssh.ParseAuthorizedKey([]byte(rest))
	}
	if err != nil {
		return signer{}, errors.New("it is no public key, alone or behind a name and options")
	}
	if _, is := key.(*ssh.Certificate); is {
		return signer{}, errors.New("it is a certificate, and quorate verifies none: give the public key")
	}
	s := signer{key: key, names: names}
	return s, s.limit(options)
}

// cutNames takes the names from the front of a line, which may be in quotes. Options
// in their place, as authorized_keys may have them, are refused.
func cutNames(line string) (names, rest string, err error) {
	if quoted, is := strings.CutPrefix(line, `"`); is {
		names, rest, _ = strings.Cut(quoted, `"`)
		return names, rest, nil
	}
	names, rest, _ = strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	for name := range strings.SplitSeq(names, ",") {
		if strings.ContainsAny(name, `="`) || strings.EqualFold(name, optionAuthority) {
			return "", "", fmt.Errorf("it begins with the option %s: write it as a line of allowed_signers, with a name in front", oneLine(name))
		}
	}
	return names, rest, nil
}

// The options of a line of allowed_signers.
const (
	optionAuthority  = "cert-authority"
	optionNamespaces = "namespaces"
	optionAfter      = "valid-after"
	optionBefore     = "valid-before"
)

// limit takes the options of a line over.
func (s *signer) limit(options []string) error {
	seen := map[string]bool{}
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		name = strings.ToLower(name)
		if seen[name] {
			return fmt.Errorf("it has the option %s twice: leave one", oneLine(name))
		}
		seen[name] = true
		if err := s.set(name, value); err != nil {
			return err
		}
	}
	if !s.after.IsZero() && !s.before.IsZero() && !s.after.Before(s.before) {
		return errors.New("its key never counts: give a valid-after that is before valid-before")
	}
	return nil
}

// set takes one option over. Values are in quotes, as OpenSSH wants them.
func (s *signer) set(name, value string) (err error) {
	quoted := len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"'
	text := strings.Trim(value, `"`)
	switch name {
	case optionAuthority:
		return errors.New("it is of a certificate authority, and quorate verifies no certificates: give the public keys of those who sign")
	case optionNamespaces:
		s.other, err = excludes(text)
	case optionAfter:
		s.after, err = parseMoment(text)
	case optionBefore:
		s.before, err = parseMoment(text)
	default:
		return fmt.Errorf("quorate does not know its option %s: remove it if it is not needed", oneLine(name))
	}
	if !quoted {
		err = errors.New("its value is not in quotes: add them")
	}
	if err != nil {
		return fmt.Errorf("option %s: %w", name, err)
	}
	return nil
}

// excludes reports whether a list of patterns leaves out what commits are signed for.
func excludes(patterns string) (bool, error) {
	named := false
	for pattern := range strings.SplitSeq(patterns, ",") {
		pattern, not := strings.CutPrefix(pattern, "!")
		if strings.ContainsAny(pattern, `[\`) { // literal in OpenSSH, and not in path.Match
			return true, errors.New("a namespace has letters, * and ? only")
		}
		matches, err := path.Match(pattern, namespace)
		if err != nil || matches && not {
			return true, err
		}
		named = named || matches
	}
	return !named, nil
}

// parseMoment reads a time as OpenSSH does: in this machine's zone, or in UTC with a Z
// or UTC behind it.
func parseMoment(text string) (time.Time, error) {
	zone, digits := time.Local, strings.ToUpper(text)
	for _, suffix := range []string{"Z", "UTC"} {
		if rest, is := strings.CutSuffix(digits, suffix); is {
			zone, digits = time.UTC, rest
			break
		}
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if at, err := time.ParseInLocation(layout, digits, zone); err == nil && len(digits) == len(layout) {
			return at, nil
		}
	}
	return time.Time{}, errors.New("it is no time: give one such as 20260131 or 20260131120000Z")
}

// refuse reports why the key does not count for what is dated a time and seen
// now; "" where it does. Both must lie within the limits. The date is the word of whoever
// signs: with a key that has ended one writes an earlier date. But what git itself would
// refuse for its date is not accepted either.
func (s signer) refuse(dated, now time.Time) string {
	over := func(at time.Time) bool { return !s.before.IsZero() && at.After(s.before) }
	ahead := func(at time.Time) bool { return at.Before(s.after) }
	until, from := s.before.UTC().Format(time.RFC3339), s.after.UTC().Format(time.RFC3339)
	switch {
	case s.other:
		return "which is allowed for other namespaces than " + namespace
	case over(now):
		return "which is allowed until " + until + " only"
	case over(dated):
		return "which is allowed until " + until + " only, and the date is later"
	case ahead(now):
		return "which is allowed from " + from + " on only"
	case ahead(dated):
		return "which is allowed from " + from + " on only, and the date is earlier"
	}
	return ""
}

// String names the key, and whose it is.
func (s signer) String() string {
	if s.names == "" {
		return sshName(s.key)
	}
	return sshName(s.key) + " of " + oneLine(s.names)
}

func sshName(key ssh.PublicKey) string { return "SSH key " + ssh.FingerprintSHA256(key) }
