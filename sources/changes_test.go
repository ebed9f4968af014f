package sources_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/quorate/quorate/sources"
)

// noise is text that does not compress to less than half; each number gives another one.
func noise(number uint32, size int) string {
	text := make([]byte, size)
	state := number
	for i := range text { // xorshift
		state ^= state << 13
		state ^= state >> 17
		state ^= state << 5
		text[i] = "0123456789abcdef"[state%16]
	}
	return string(text)
}

// Of the next commit only what it changes is carried, in each of Git's protocols, and a file that it does not change
// is not read again.
func TestOnlyChangesAreFetched(t *testing.T) {
	const size = 128 << 10 // 64 KiB in a pack
	everyWay(t, map[string]string{"a.yaml": noise(1, size), "other/a.yaml": noise(2, 100)}, func(t *testing.T, u *upstream, open opener) {
		// The limit is of what the server may send for one commit.
		repo := open(t, sources.Config{Limits: sources.Limits{PackBytes: 100 << 10}})
		before := fetch(t, repo)
		for i, name := range []string{"b.yaml", "other/c.yaml", "d.yaml"} {
			u.commit("another", map[string]string{name: noise(uint32(3+i), size)})
			got := fetch(t, repo)
			if len(got.Files) != len(before.Files)+1 || string(got.Files[0].Data) != noise(1, size) {
				t.Fatalf("files %q", paths(got))
			}
			if &got.Files[0].Data[0] != &before.Files[0].Data[0] {
				t.Errorf("%s was read again for %s", got.Files[0].Path, name)
			}
			before = got
		}
	})
}

// What is read after another commit is what is read at first, whatever has become of files in between.
func TestChangesAreReadLikeTheWhole(t *testing.T) {
	start := map[string]string{
		"clusters/a.yaml": "a", "clusters/sub/b.yaml": "b", "clusters/sub/note.txt": "note", "clusters/large.yaml": strings.Repeat("x", 1001),
		"elsewhere/c.yaml": "c", "elsewhere/deep/d.yaml": "d", "elsewhere/large.yaml": strings.Repeat("y", 1001),
	}
	overSome(t, start, func(t *testing.T, u *upstream, open opener) {
		cfg := sources.Config{Path: "clusters", Limits: sources.Limits{FileBytes: 1000}}
		repo := open(t, cfg)
		fetch(t, repo)
		move := func(from, to string) func() { return func() { u.git(u.work, "mv", from, to) } }
		for _, step := range []struct {
			name   string
			change func()
		}{
			{"a file changes", func() { write(t, u.work+"/clusters/a.yaml", "aa") }},
			{"a file comes from elsewhere", move("elsewhere/c.yaml", "clusters/c.yaml")},
			{"a directory comes from elsewhere", move("elsewhere/deep", "clusters/deep")},
			{"a large file comes from elsewhere", move("elsewhere/large.yaml", "clusters/z.yaml")},
			{"a large file comes", func() { write(t, u.work+"/clusters/y.yaml", strings.Repeat("z", 1001)) }},
			{"a large file is small", func() { write(t, u.work+"/clusters/large.yaml", "small") }},
			{"what is no YAML becomes a file", move("clusters/sub/note.txt", "clusters/sub/note.yaml")},
			{"a file goes", func() { u.git(u.work, "rm", "--quiet", "clusters/a.yaml") }},
			{"a directory is renamed", move("clusters/sub", "clusters/below")},
			{"two files are alike", func() { write(t, u.work+"/clusters/twin.yaml", "b") }},
			{"nothing changes", func() {}},
		} {
			step.change()
			u.commit(step.name, nil)
			got, want := fetch(t, repo), fetch(t, open(t, cfg))
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: read %q of %s, want %q", step.name, paths(got), got.Tree, paths(want))
			}
		}
	})
}

// A server that does not give the changes is asked for all.
func TestServerThatGivesNoChangesIsReadWhole(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	srv := serve(t, u)
	repo := open(t, sources.Config{URL: srv.repo()})
	fetch(t, repo)
	u.commit("change", map[string]string{"b.yaml": "b"})
	refused := srv.refuse("have ")
	wantPaths(t, fetch(t, repo), "a.yaml", "b.yaml")
	if refused.Load() == 0 {
		t.Error("the changes were not asked for")
	}
}
