package page

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/schema"
)

// 224, 225: in a real browser every page loads without a violation of its policy or an
// error, fits on a phone, and is one that keyboards and screen readers can use.
func TestPagesInABrowser(t *testing.T) {
	tab := startBrowser(t).open(newWorld().handler())
	pictures := t.ArtifactDir()
	for _, path := range everyPage() {
		for _, look := range []struct {
			name, theme   string
			width, height int
		}{{"light", "light", 1280, 900}, {"dark", "dark", 1280, 900}, {"phone", "dark", 360, 780}} {
			tab.theme(look.theme)
			tab.size(look.width, look.height, look.name == "phone")
			tab.load(path)
			for _, complaint := range tab.complained() {
				// That a page is not there is what it says.
				if !strings.HasPrefix(complaint, "network: Failed to load resource: the server responded with a status of 4") || !strings.HasSuffix(complaint, path) {
					t.Errorf("%s: %s", path, complaint)
				}
			}
			if wide := tab.eval("document.documentElement.scrollWidth"); wide != float64(look.width) {
				t.Errorf("%s, %s: the page is %v wide, the window %d", path, look.name, wide, look.width)
			}
			nodes := tab.accessible()
			checkAccessible(t, path+", "+look.name, nodes)
			if strings.HasSuffix(path, "/EtcdCluster/shop/orders") {
				checkCluster(t, look.name, nodes)
			}
			if path == "/" || path == "/git" || strings.HasSuffix(path, "/orders") {
				tab.screenshot(pictures, strings.Trim(strings.ReplaceAll(path, "/", "-"), "-")+"-"+look.name)
			}
		}
	}
	if light := tab.eval(`getComputedStyle(document.documentElement).backgroundColor`); light != "rgb(18, 22, 28)" {
		t.Errorf("a dark page is %v", light)
	}
}

// checkAccessible checks what a screen reader is told of a page.
func checkAccessible(t *testing.T, page string, nodes []node) {
	t.Helper()
	count, level := map[string]int{}, 0
	names := map[string][]string{}
	for _, n := range nodes {
		count[n.role]++
		names[n.role] = append(names[n.role], n.name)
		switch n.role {
		case "link", "button", "textbox", "searchbox", "combobox", "heading", "navigation", "region", "table", "columnheader", "rowheader", "progressbar", "RootWebArea":
			if n.name == "" {
				t.Errorf("%s: a %s has no name", page, n.role)
			}
		}
		if n.role == "heading" {
			if n.level > level+1 || n.level == 1 && level > 0 {
				t.Errorf("%s: the heading %q of level %d comes after one of level %d", page, n.name, n.level, level)
			}
			level = n.level
		}
	}
	if level == 0 || count["main"] != 1 || count["banner"] != 1 || count["navigation"] < 1 || count["status"] != 1 {
		t.Errorf("%s: the landmarks are %v", page, count)
	}
	for _, role := range []string{"navigation", "region"} {
		sorted := slices.Sorted(slices.Values(names[role]))
		if len(slices.Compact(sorted)) != len(names[role]) {
			t.Errorf("%s: two have the role %s and one name: %q", page, role, names[role])
		}
	}
	if count["table"] > 0 && (count["row"] < 2*count["table"] || count["columnheader"] < 2 || count["cell"] < 2) {
		t.Errorf("%s: a table has lost its parts: %v", page, count)
	}
}

// checkCluster checks what a screen reader is told of a cluster in the midst of an upgrade:
// how far it is, by name, and the size of a database in words only.
func checkCluster(t *testing.T, look string, nodes []node) {
	t.Helper()
	told := map[string]bool{}
	for _, n := range nodes {
		told[n.role+" "+strings.TrimPrefix(n.name, "Database: ")] = true // a phone's cells begin with their column
		if strings.EqualFold(n.role, "meter") {
			t.Errorf("%s: a size is told twice: %+v", look, n)
		}
	}
	for _, want := range []string{
		"progressbar Rollout", "region What was done", "region Events", "columnheader Database",
		"cell 1.9 GiB of 2.0 GiB (92 %), 7.0 MiB in use",
	} {
		if !told[want] {
			t.Errorf("%s: %q is not told", look, want)
		}
	}
}

// The checks above see what they are there for.
func TestABadPageIsSeen(t *testing.T) {
	good := newWorld().handler()
	tab := startBrowser(t).open(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/bad" {
			good.ServeHTTP(w, r)
			return
		}
		secure(w.Header())
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!DOCTYPE html><html lang=en><title>Bad</title><body data-watch=all><p id=connection role=status></p><p><a href=/x></a></p><script>document.title="run"</script><script src=/static/page.js></script>`)
	}))
	tab.load("/bad")
	if complaints := strings.Join(tab.complained(), "\n"); !strings.Contains(complaints, "Content Security Policy") || tab.eval("document.title") != "Bad" {
		t.Errorf("an inline script is not seen: %s", complaints)
	}
	if !slices.ContainsFunc(tab.accessible(), func(n node) bool { return n.role == "link" && n.name == "" }) {
		t.Errorf("a link without a name is not seen: %v", tab.accessible())
	}
}

// 222, 244: a page that is open shows how an upgrade goes, without being loaded again, and
// leaves the focus where it is; it is told when the server is gone.
func TestAnOpenPageFollowsAnUpgrade(t *testing.T) {
	w := newWorld()
	tab := startBrowser(t).open(w.handler())
	tab.load("/objects/EtcdCluster/shop/orders")
	tab.eval(`window.same = true; document.querySelector("main a[href*=before-the-move]").focus()`)
	pictures := t.ArtifactDir()
	for done := 2; done <= 3; done++ {
		tab.screenshot(pictures, fmt.Sprintf("upgrade-%d", done-1))
		w.roll(done)
		if done < 3 {
			tab.await(fmt.Sprintf(`document.querySelector("progress")?.position === %d/3`, done))
			tab.await(fmt.Sprintf(`document.querySelector("#rollout ~ p").textContent.includes("%d of 3 members run")`, done))
		}
		tab.await(fmt.Sprintf(`document.querySelectorAll("#plan ~ ol li").length === %d`, 3-done))
	}
	tab.await(`document.querySelector("#plan ~ p").textContent.includes("the cluster is what Git says")`)
	tab.await(`document.querySelector("progress") === null`)
	if tab.eval("window.same") != true || tab.eval(`document.activeElement.getAttribute("href")`) != "/objects/EtcdBackup/shop/before-the-move" {
		t.Errorf("the page was loaded again, or the focus is on %v", tab.eval(`document.activeElement.outerHTML`))
	}
	w.mu.Lock()
	w.git.Reason = ""
	w.mu.Unlock()
	tab.await(`document.querySelector("[data-live=notices]").textContent.trim() === ""`)
	tab.load("/")
	w.set(cmdtest.Cluster("carts", schema.PhaseStalled, "QuorumLost", "two of three members are gone"))
	tab.await(`document.querySelector("[data-live=rows]").textContent.includes("two of three members are gone")`)
	if complaints := tab.complained(); complaints != nil {
		t.Errorf("the pages complain of %q", complaints)
	}
}

// 225: everything on a page is reached by keyboard: the content first, and the filter.
func TestPagesAreUsedByKeyboard(t *testing.T) {
	w := &world{}
	for i := range 10_000 {
		w.list = append(w.list, cmdtest.Ready(fmt.Sprintf("c%05d", i)))
	}
	tab := startBrowser(t).open(w.handler())
	tab.load("/")
	tab.press("Tab", 9)
	if got := tab.eval(`document.activeElement.textContent`); got != "Skip to content" {
		t.Errorf("the first stop is %v", got)
	}
	if got := tab.eval(`document.activeElement.getBoundingClientRect().left >= 0`); got != true {
		t.Error("it is not seen")
	}
	tab.press("Enter", 13)
	tab.await(`document.activeElement.id === "main"`)
	reached := false
	for range 20 {
		tab.press("Tab", 9)
		if reached = tab.eval(`document.activeElement.id`) == "q"; reached {
			break
		}
	}
	if !reached {
		t.Fatal("the filter is not reached")
	}
	tab.do("Input.insertText", params{"text": "c0471"}, nil)
	tab.press("Enter", 13)
	tab.await(`location.search.includes("q=c0471") && document.querySelector("caption")?.textContent === "1 to 10 of 10"`)
}
