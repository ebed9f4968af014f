package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/test/needs"
)

// maxBinarySize is what the binary may have, in bytes. With all exported methods it has 103 MB.
const maxBinarySize = 65_000_000

// The linker drops methods that nothing calls, unless something reachable calls a method by a name
// that only becomes known at run time, as text/template and html/template do. Then it keeps every
// exported method of every type, also those of clients of which quorate calls a few.
func TestLinkerDropsUnusedMethods(t *testing.T) {
	needs.Long(t)
	if !builtLikeMake() {
		needs.Skip(t, "built without make's GOFLAGS, so everything would be compiled again: `make unit` runs it")
	}
	for _, program := range []string{"quorate", "quorate-guard"} {
		path, chains := link(t, "../"+program)
		for _, chain := range chains {
			t.Errorf("%s: the linker keeps all exported methods, because of a call by reflection: %s", program, chain)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes", program, info.Size())
		if info.Size() > maxBinarySize {
			t.Errorf("%s has %d bytes, want at most %d", program, info.Size(), maxBinarySize)
		}
	}
}

// The test above notices a template.
func TestLinkerKeepsMethodsForTemplates(t *testing.T) {
	source := filepath.Join(t.TempDir(), "main.go")
	const program = `package main

import (
	"os"
	"text/template"
)

func main() { show(template.New("")) }

func show(t *template.Template) { _ = t.Execute(os.Stdout, nil) }
`
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	_, chains := link(t, source)
	if !slices.ContainsFunc(chains, func(chain string) bool {
		return strings.HasPrefix(chain, "main.main → ") && strings.HasSuffix(chain, "→ text/template.(*state).evalField")
	}) {
		t.Errorf("the chains are %q", chains)
	}
}

// builtLikeMake reports whether this test was built with the flags of `make build`, so that the
// packages it links are in Go's build cache.
func builtLikeMake() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-tags" && strings.Contains(s.Value, "grpcnotrace")
	})
}

// link builds a program as `make build` does, and returns its path with the chains of symbols that
// lead to calls of methods by names that the linker does not know.
func link(t *testing.T, program string) (path string, chains []string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "program")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w -dumpdep", "-o", path, program)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	chains, other := reflectChains(t, out)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("build %s: %v\n%s", program, err, strings.Join(other, "\n"))
	}
	return path, chains
}

// reflectChains reads the output of the linker's -dumpdep, one line for each symbol with the one that
// reached it first. It returns the chains that lead to calls of methods by unknown names, in the order in
// which the linker found them, and the lines that are none of -dumpdep's.
func reflectChains(t *testing.T, dump io.Reader) (chains, other []string) {
	t.Helper()
	parents := map[string]string{}
	lines := bufio.NewScanner(dump)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		from, to, found := strings.Cut(lines.Text(), " -> ")
		if !found {
			other = append(other, lines.Text())
			continue
		}
		parents[symbolName(to)] = symbolName(from)
		if strings.HasSuffix(to, "<ReflectMethod>") {
			chains = append(chains, chainTo(symbolName(to), parents))
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return chains, other
}

// symbolName is a symbol without what the linker notes about it.
func symbolName(symbol string) string {
	symbol, _, _ = strings.Cut(symbol, " <UsedInIface>")
	symbol, _, _ = strings.Cut(symbol, " <ReflectMethod>")
	return symbol
}

// chainTo is the chain of symbols from main to one, or from where no parent is known.
func chainTo(symbol string, parents map[string]string) string {
	chain := []string{symbol}
	for symbol != "main.main" && parents[symbol] != "" && parents[symbol] != "_" {
		symbol = parents[symbol]
		chain = append(chain, symbol)
	}
	slices.Reverse(chain)
	return strings.Join(chain, " → ")
}
