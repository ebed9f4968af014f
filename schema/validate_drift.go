package schema

import (
	"fmt"
	"slices"
	"strings"
)

// maxIgnored bounds the fields that are ignored.
const maxIgnored = 16

// drift checks what is done about objects that others have changed.
func (v *validator) drift(d DriftSpec) {
	if d.Mode != "" {
		oneOf(v, "drift.mode", d.Mode, DriftCorrect, DriftDetect)
	}
	if n := len(d.Ignore); n > maxIgnored {
		v.fail("drift.ignore", "has %d fields and may have %d: ignore what is above them", n, maxIgnored)
		return
	}
	for i, ignored := range d.Ignore {
		v.ignored(fmt.Sprintf("drift.ignore[%d]", i), ignored)
	}
}

// ignored checks one field that is no drift. What quorate relies on is not to be hidden.
func (v *validator) ignored(field string, d IgnoredDrift) {
	if d.Kind != "Service" {
		v.fail(field+".kind", "is %q and must be Service, the one for clients: quorate relies on every field of all other objects", d.Kind)
	}
	if strings.TrimSpace(d.Reason) == "" {
		v.fail(field+".reason", "is missing: say who sets the field, and why")
	}
	tokens, ok := PointerTokens(d.Path)
	switch {
	case !ok || len(tokens) < 2 || tokens[0] != "spec":
		v.fail(field+".path", "is %q and must be a JSON pointer to a field of the spec, such as /spec/externalTrafficPolicy", d.Path)
	case slices.Contains([]string{"type", "selector", "ports", "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "publishNotReadyAddresses"}, tokens[1]):
		v.fail(field+".path", "is %q, by which clients find the members: quorate sets that itself", d.Path)
	}
}

// PointerTokens are the tokens of a JSON pointer (RFC 6901), which is "" for none. ok is
// false for what is no pointer, and for one with spaces, which no field of Kubernetes has.
func PointerTokens(pointer string) (tokens []string, ok bool) {
	if pointer == "" {
		return nil, true
	}
	rest, found := strings.CutPrefix(pointer, "/")
	if !found || strings.ContainsAny(pointer, " \t\r\n") {
		return nil, false
	}
	for token := range strings.SplitSeq(rest, "/") {
		if escaped := strings.NewReplacer("~0", "", "~1", "").Replace(token); token == "" || strings.Contains(escaped, "~") {
			return nil, false
		}
		tokens = append(tokens, strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"))
	}
	return tokens, true
}
