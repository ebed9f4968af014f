package release_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/schema/release"
)

// exception is a flag of which a binary's help says other than the truth.
type exception struct {
	lines []string
	flag  string
	// taken says that the binary takes the flag, although its help is silent; else
	// the help names it, and the binary ends with an error.
	taken bool
	why   string
}

func exceptions() []exception {
	return []exception{
		{[]string{"3.4"}, "log-output", true, "renamed to log-outputs; its help is for new users"},
		{[]string{"3.5"}, "experimental-snapshot-catchup-entries", true, "never written into the help of 3.5"},
		{[]string{"3.7"}, "discovery", false, "removed by PR 20109, which forgot the help"},
		{[]string{"3.7"}, "discovery-proxy", false, "removed by PR 20109, which forgot the help"},
	}
}

func exceptionFor(v release.Version, flag string) (exception, bool) {
	for _, e := range exceptions() {
		if e.flag == flag && slices.Contains(e.lines, v.Line()) {
			return e, true
		}
	}
	return exception{}, false
}

// A flag in the help begins its line, or follows the name of the program.
var helpFlag = regexp.MustCompile(`(?m)^\s+(?:etcd )?--([a-z0-9-]+)(?:$| '([^'\n]*)'| ([0-9]+))`)

// helpFlags are the flags that a help text names.
func helpFlags(text string) map[string]bool {
	flags := map[string]bool{}
	for _, match := range helpFlag.FindAllStringSubmatch(text, -1) {
		flags[match[1]] = true
	}
	delete(flags, "version")
	return flags
}

// helpDefaults are the defaults that a help text prints; it is silent of some.
func helpDefaults(text string) map[string]string {
	defaults := map[string]string{}
	for _, at := range helpFlag.FindAllStringSubmatchIndex(text, -1) {
		for group := 4; group <= 6; group += 2 {
			if at[group] >= 0 {
				defaults[text[at[2]:at[3]]] = text[at[group]:at[group+1]]
			}
		}
	}
	return defaults
}

func TestFlagsAreThoseOfTheHelp(t *testing.T) {
	forEach(t, func(t *testing.T, v release.Version) {
		named := helpFlags(help(t, v))
		known := release.KnownFlags(v)
		for flag := range named {
			if e, ok := exceptionFor(v, flag); !slices.Contains(known, flag) && (!ok || e.taken) {
				t.Errorf("the help names %s, and the catalogue does not know it", flag)
			}
		}
		for _, flag := range known {
			if named[flag] {
				continue
			}
			if e, ok := exceptionFor(v, flag); !ok || !e.taken {
				t.Errorf("the catalogue knows %s, and the help does not name it", flag)
			}
		}
		t.Logf("%d flags in the help, %d in the catalogue", len(named), len(known))
	})
}

// The exceptions are true of the binary itself.
func TestExceptionsOfTheHelp(t *testing.T) {
	forEach(t, func(t *testing.T, v release.Version) {
		named := helpFlags(help(t, v))
		for _, e := range exceptions() {
			if !slices.Contains(e.lines, v.Line()) {
				continue
			}
			out, err := helpWith(t, v, "--"+e.flag+"="+sampleValues()[e.flag])
			if named[e.flag] == e.taken || (err == nil) != e.taken || e.why == "" {
				t.Errorf("%s: %v\n%.200s", e.flag, err, out)
			}
			if !e.taken && !strings.Contains(out, "flag provided but not defined: -"+e.flag) {
				t.Errorf("%s is refused for another reason: %.200s", e.flag, out)
			}
		}
	})
}

// The help might be silent of more. So a binary must take at once all flags that
// the catalogue knows it to have, and refuse each of the others.
func TestEveryFlagIsTakenOrRefused(t *testing.T) {
	samples := sampleValues()
	forEach(t, func(t *testing.T, v release.Version) {
		var known []string
		for _, flag := range everyFlag() {
			if argument := "--" + flag + "=" + samples[flag]; release.KnownFlag(v, flag) {
				known = append(known, argument)
			} else if out, err := helpWith(t, v, argument); err == nil {
				t.Errorf("the catalogue does not know %s, and etcd takes it: %.200s", flag, out)
			}
		}
		if out, err := helpWith(t, v, known...); err != nil {
			t.Errorf("%v: %.200s", err, out)
		}
		t.Logf("%d flags of all minors are taken, %d are refused", len(known), len(everyFlag())-len(known))
	})
}

var helpGate = regexp.MustCompile(`(?m)^\s+([A-Za-z]+)=true\|false \(([A-Z]+) - default=(true|false)\)`)

func TestGatesAreThoseOfTheHelp(t *testing.T) {
	forEach(t, func(t *testing.T, v release.Version) {
		var named, known []string
		for _, match := range helpGate.FindAllStringSubmatch(help(t, v), -1) {
			named = append(named, strings.Join(match[1:], " "))
		}
		for _, gate := range release.Gates(v) {
			known = append(known, fmt.Sprintf("%s %s %t", gate.Name, gate.Stage, gate.Default))
		}
		slices.Sort(named)
		if !slices.Equal(named, known) {
			t.Errorf("the help names\n%s\nand the catalogue has\n%s", strings.Join(named, "\n"), strings.Join(known, "\n"))
		}
		t.Logf("%d gates", len(known))
	})
}

// A default that the help prints is that of the catalogue, where it has one.
func TestDefaultsAreThoseOfTheHelp(t *testing.T) {
	forEach(t, func(t *testing.T, v release.Version) {
		count := 0
		for flag, printed := range helpDefaults(help(t, v)) {
			if want, known := release.Default(v, flag); known {
				count++
				if printed != want {
					t.Errorf("%s: the help says %q, the catalogue %q", flag, printed, want)
				}
			}
		}
		t.Logf("%d defaults", count)
	})
}

// A default that differs between two neighbours is in the catalogue.
func TestNoOtherDefaultChanged(t *testing.T) {
	for i, v := range checked()[1:] {
		old := checked()[i]
		before, after := helpDefaults(help(t, old)), helpDefaults(help(t, v))
		for flag, printed := range after {
			if was, both := before[flag]; !both || was == printed {
				continue
			}
			if _, known := release.Default(v, flag); !known || old.Line() == v.Line() {
				t.Errorf("%s: %s has %q, %s has %q, and the catalogue does not know", flag, old, before[flag], v, printed)
			}
		}
	}
}

var (
	goes      = regexp.MustCompile(`\[DEPRECATED\]|Deprecated (in|and)|Will be deprecated`)
	successor = regexp.MustCompile(`Use '--([^']+)' instead`)
)

// helpDeprecated are the flags whose help, a paragraph or up to the next flag,
// says that they go, each with what it says to write instead, or "".
func helpDeprecated(text string) map[string]string {
	flags := map[string]string{}
	starts := helpFlag.FindAllStringSubmatchIndex(text, -1)
	for i, at := range starts {
		about := text[at[0]:]
		if i+1 < len(starts) {
			about = text[at[0]:starts[i+1][0]]
		}
		about, _, _ = strings.Cut(strings.TrimSpace(about), "\n\n")
		if !goes.MatchString(about) {
			continue
		}
		flags[text[at[2]:at[3]]] = ""
		if use := successor.FindStringSubmatch(about); use != nil {
			flags[text[at[2]:at[3]]] = strings.Replace(use[1], "=", ": ", 1)
		}
	}
	return flags
}

// What a binary calls deprecated, the catalogue does, with the same successor.
func TestDeprecatedFlagsAreThoseOfTheHelp(t *testing.T) {
	forEach(t, func(t *testing.T, v release.Version) {
		called := helpDeprecated(help(t, v))
		for flag, instead := range called {
			message, deprecated := release.Deprecated(v, flag)
			if !deprecated || instead != "" && !strings.HasSuffix(message, "write "+instead) {
				t.Errorf("the help calls %s deprecated, for %q, and the catalogue says %q", flag, instead, message)
			}
		}
		t.Logf("%d flags are called deprecated", len(called))
	})
}
