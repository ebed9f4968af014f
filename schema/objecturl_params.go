package schema

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// paramNeed is what a parameter of an object URL asks of the file that has it.
type paramNeed int

const (
	// paramUnknown is a parameter that quorate does not take.
	paramUnknown paramNeed = iota
	// paramFree says how a store is used, and neither which one nor as whom.
	paramFree
	// paramSecret says where the credentials go, or which of several they are: so they
	// must be those of a Secret, and not the daemon's own.
	paramSecret
	// paramDaemon has the daemon use another identity or a file of its own, which no
	// Secret makes harmless.
	paramDaemon
)

// objectURLParams are the parameters that an object URL of a scheme may have: those of
// the openers of gocloud.dev/blob, and quorate's own, root of file and endpoint of gs.
// It lists what is allowed, so that what a later opener learns is refused until somebody
// has said here what it needs. nil for another scheme.
func objectURLParams(scheme string) map[string]paramNeed {
	switch scheme {
	case "s3":
		return map[string]paramNeed{
			"accelerate": paramFree, "anonymous": paramFree, "awssdk": paramFree, "dualstack": paramFree, "fips": paramFree, "kmskeyid": paramFree,
			"rate_limiter_capacity": paramFree, "region": paramFree, "request_checksum_calculation": paramFree, "response_checksum_validation": paramFree,
			"s3ForcePathStyle": paramFree, "ssetype": paramFree, "use_path_style": paramFree,
			"disable_https": paramSecret, "endpoint": paramSecret, "hostname_immutable": paramSecret, "profile": paramSecret,
			"role": paramDaemon,
		}
	case "gs":
		return map[string]paramNeed{
			"anonymous": paramFree, "grpc": paramFree, "zonal": paramFree,
			"endpoint": paramSecret, "universe_domain": paramSecret,
			"private_key_path": paramDaemon,
		}
	case "azblob":
		return map[string]paramNeed{
			"cdn": paramSecret, "domain": paramSecret, "localemu": paramSecret, "protocol": paramSecret, "storage_account": paramSecret,
		}
	case "file":
		return map[string]paramNeed{"root": paramFree}
	}
	return nil
}

// isParamWord reports whether messages may repeat the name of a parameter: one that an
// opener knows. Any other may be a secret that ended up in the wrong place.
func isParamWord(name string) bool {
	for _, scheme := range []string{"s3", "gs", "azblob", "file"} {
		if objectURLParams(scheme)[name] != paramUnknown {
			return true
		}
	}
	return slices.Contains([]string{"prefix", "base_url", "create_dir", "dir_file_mode", "metadata", "no_tmp_dir"}, name)
}

// objectParam is one parameter of an object URL, decoded.
type objectParam struct{ name, value string }

// readParams reads the part after the question mark, in its order.
func readParams(raw string) ([]objectParam, error) {
	if _, err := url.ParseQuery(raw); err != nil {
		// The cause would repeat a part of it.
		return nil, errors.New("the part after ? is not name=value pairs joined by &")
	}
	var params []objectParam
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name, _ = url.QueryUnescape(name)
		value, _ = url.QueryUnescape(value)
		params = append(params, objectParam{name, value})
	}
	return params, nil
}

// checkQuery refuses parameters that look like a secret, judged by their name only, and
// those that quorate does not take.
func checkQuery(scheme, raw string) error {
	params, err := readParams(raw)
	if err != nil {
		return err
	}
	known, seen := objectURLParams(scheme), map[string]bool{}
	for i, p := range params {
		if looksSecret(p.name) {
			return errors.New("a parameter of the URL looks like a secret, which must not be in Git: name a Secret as credentials.secretName, or give the daemon credentials by its environment or service account")
		}
		if known == nil {
			continue // checkPlace refuses the scheme
		}
		if known[p.name] == paramUnknown {
			return unknownParam(scheme, i, p.name, slices.Sorted(maps.Keys(known)))
		}
		if seen[p.name] {
			return fmt.Errorf("the parameter %s is there twice: keep one", p.name)
		}
		seen[p.name] = true
		if err := checkParamValue(p); err != nil {
			return err
		}
	}
	return nil
}

// unknownParam is the refusal of the i-th parameter, counted from 0.
func unknownParam(scheme string, i int, name string, known []string) error {
	which := "the parameter " + name
	if !isParamWord(name) {
		which = fmt.Sprintf("parameter %d after the ?", i+1)
	}
	return fmt.Errorf("%s is none that quorate takes for %s%s: correct it or leave it out; there are %s", which, scheme, didYouMean(name, known), strings.Join(known, ", "))
}

// checkParamValue refuses values by which a parameter would be more than it is.
func checkParamValue(p objectParam) error {
	switch p.name {
	case "region": // becomes a part of a host's name
		if strings.ContainsFunc(p.value, func(r rune) bool { return !isPathWord(string(r)) }) {
			return errors.New("the parameter region has letters, digits and dashes, such as eu-west-1: correct it")
		}
	case "endpoint":
		u, err := url.Parse(p.value)
		switch {
		case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
			return errors.New("the parameter endpoint is a URL such as https://s3.example.com: correct it")
		case u.User != nil:
			return errors.New("the parameter endpoint must not hold a user or password: name a Secret as credentials.secretName")
		}
	}
	return nil
}

// CheckStoreAccess refuses an object URL with a parameter that says where credentials
// go, or which they are, unless these are the file's own: secret says that a Secret of
// the file has them. The daemon's own go only where daemons sends them, which is the
// daemon's --backup-url, expanded, or "" where that is not known: a URL with exactly its
// parameters of this sort is allowed.
func CheckStoreAccess(objectURL string, secret bool, daemons string) error {
	u, err := url.Parse(objectURL)
	if err != nil || u.User != nil || strings.Contains(objectURL, "#") {
		return errors.New("it is not a URL such as s3://bucket/orders.db")
	}
	if objectURLParams(u.Scheme) == nil {
		return errors.New("the scheme must be s3, gs, azblob or file, as in s3://bucket/orders.db")
	}
	if err := checkQuery(u.Scheme, u.RawQuery); err != nil {
		return err
	}
	if daemons != "" && accessOf(objectURL) == accessOf(daemons) {
		return nil
	}
	params, err := readParams(u.RawQuery)
	if err != nil {
		return err
	}
	for _, p := range params {
		switch need := objectURLParams(u.Scheme)[p.name]; {
		case need == paramDaemon:
			return fmt.Errorf("the parameter %s has the daemon use an identity or a file of its own, and only its --backup-url may say that: leave it out, and put the credentials into a Secret that credentials.secretName names", p.name)
		case need == paramSecret && !secret:
			return fmt.Errorf("the parameter %s says where credentials go, or which, and the daemon's own go only where its --backup-url says: name a Secret with keys for this store as credentials.secretName, or leave the parameter out", p.name)
		}
	}
	return nil
}

// accessOf is where the credentials of a URL go, and which they are: its scheme with the
// parameters that say so, in one order.
func accessOf(objectURL string) string {
	u, err := url.Parse(objectURL)
	if err != nil {
		return ""
	}
	said := url.Values{}
	for name, values := range u.Query() {
		if need := objectURLParams(u.Scheme)[name]; need == paramSecret || need == paramDaemon {
			said[name] = values
		}
	}
	return u.Scheme + "?" + said.Encode()
}

// UnencryptedParam is the parameter by which an object URL reaches its store without
// TLS, "" where there is none.
func UnencryptedParam(objectURL string) string {
	u, err := url.Parse(objectURL)
	if err != nil {
		return ""
	}
	q := u.Query()
	plain, _ := strconv.ParseBool(q.Get("disable_https"))
	switch {
	case strings.HasPrefix(strings.ToLower(q.Get("endpoint")), "http:"):
		return "endpoint"
	case plain:
		return "disable_https"
	case q.Get("protocol") == "http":
		return "protocol"
	}
	return ""
}

// storeAccess checks who is asked by an object URL, and as whom. secret says that its
// credentials come from a Secret.
func (v *validator) storeAccess(field, objectURL string, secret bool) {
	if err := CheckStoreAccess(objectURL, secret, ""); err != nil {
		v.fail(field, "%v", err)
		return
	}
	if param := UnencryptedParam(objectURL); param != "" {
		v.warn(IDUnencryptedStore, field, "reaches the store without TLS by its parameter %s, so that backups and what proves who quorate is can be read on the way: write https; the daemon refuses it unless it runs with --insecure-stores", param)
	}
}
