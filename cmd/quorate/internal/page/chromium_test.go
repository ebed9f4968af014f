package page

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/test/needs"
)

// browser is a real Chromium, which is spoken to by the DevTools protocol over a pipe.
type browser struct {
	*testing.T
	to io.WriteCloser

	mu      sync.Mutex
	last    int
	answers map[int]chan answer
	tabs    map[string]*tab
	ended   error
}

// answer is what the browser says to a call, or by itself.
type answer struct {
	ID        int             `json:"id"`
	Method    string          `json:"method"`
	SessionID string          `json:"sessionId"`
	Params    json.RawMessage `json:"params"`
	Result    json.RawMessage `json:"result"`
	Error     *struct{ Message string }
}

// startBrowser starts Chromium without a window. It ends with the test.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	chromium := needs.Program(t, "chromium")
	reads, to, err := os.Pipe()
	from, writes, err2 := os.Pipe()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, chromium, "--headless=new", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(),
		"--no-sandbox", // the tests may be root's, and load their own pages only
		"--disable-dev-shm-usage", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-extensions", "--hide-scrollbars", "--proxy-server=direct://", "about:blank")
	cmd.ExtraFiles = []*os.File{reads, writes}
	said := &strings.Builder{}
	cmd.Stderr, cmd.WaitDelay = said, 10*time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = reads.Close(), writes.Close()
	b := &browser{T: t, to: to, answers: map[int]chan answer{}, tabs: map[string]*tab{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.listen(from)
	}()
	t.Cleanup(func() {
		b.mu.Lock()
		if b.ended != nil {
			t.Logf("chromium ended by itself: %v: %s", b.ended, said)
		}
		b.mu.Unlock()
		b.send(0, "", "Browser.close", nil)
		wait := time.AfterFunc(10*time.Second, cancel)
		_ = cmd.Wait() // its exit code says nothing
		wait.Stop()
		cancel()
		_, _ = to.Close(), from.Close()
		<-ended
	})
	return b
}

// listen hands on what the browser says, until it ends.
func (b *browser) listen(from io.Reader) {
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		text, err := r.ReadBytes(0)
		var a answer
		if err == nil {
			err = json.Unmarshal(text[:len(text)-1], &a)
		}
		b.mu.Lock()
		switch {
		case err != nil:
			b.ended = err
			for _, waiting := range b.answers {
				close(waiting)
			}
			b.mu.Unlock()
			return
		case a.ID != 0:
			if waiting, there := b.answers[a.ID]; there {
				waiting <- a
				delete(b.answers, a.ID)
			}
		case b.tabs[a.SessionID] != nil:
			b.tabs[a.SessionID].hear(a)
		}
		b.mu.Unlock()
	}
}

func (b *browser) send(id int, session, method string, params any) {
	if params == nil {
		params = map[string]any{}
	}
	call := map[string]any{"id": id, "method": method, "params": params}
	if id == 0 {
		call["id"] = 1_000_000
	}
	if session != "" {
		call["sessionId"] = session
	}
	text, err := json.Marshal(call)
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	if err != nil && id != 0 {
		b.Errorf("%s: %v", method, err)
	}
}

// try calls a method, and decodes its result.
func (b *browser) try(session, method string, params, result any) error {
	b.Helper()
	waiting := make(chan answer, 1)
	b.mu.Lock()
	b.last++
	id := b.last
	b.answers[id] = waiting
	b.mu.Unlock()
	b.send(id, session, method, params)
	a, open := <-waiting
	switch {
	case !open:
		return fmt.Errorf("%s: the browser has ended", method)
	case a.Error != nil:
		return fmt.Errorf("%s: %s", method, a.Error.Message)
	case result != nil:
		return json.Unmarshal(a.Result, result)
	}
	return nil
}

func (b *browser) call(session, method string, params, result any) {
	b.Helper()
	if err := b.try(session, method, params, result); err != nil {
		b.Fatal(err)
	}
}

// tab is one page in the browser.
type tab struct {
	*browser
	session, server string
	// complaints are errors of the console, violations of the policy and exceptions.
	complaints []string
}

// params are parameters of a call.
type params = map[string]any

// open opens a tab for pages of a server.
func (b *browser) open(h http.Handler) *tab {
	b.Helper()
	server := httptest.NewServer(h)
	b.Cleanup(server.Close)
	b.Cleanup(server.CloseClientConnections)
	var target struct{ TargetID string }
	b.call("", "Target.createTarget", params{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("", "Target.attachToTarget", params{"targetId": target.TargetID, "flatten": true}, &attached)
	t := &tab{browser: b, session: attached.SessionID, server: server.URL}
	b.mu.Lock()
	b.tabs[t.session] = t
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Network", "Accessibility"} {
		t.do(domain+".enable", nil, nil)
	}
	t.size(1280, 900, false)
	return t
}

func (t *tab) do(method string, p params, result any) {
	t.Helper()
	t.call(t.session, method, p, result)
}

// hear notes what a page complains of.
func (t *tab) hear(a answer) {
	var p struct {
		Type  string
		Entry struct{ Level, Source, Text, URL string }
		Args  []struct{ Value any }
	}
	_ = json.Unmarshal(a.Params, &p)
	switch {
	case a.Method == "Runtime.exceptionThrown":
		t.complaints = append(t.complaints, string(a.Params))
	case a.Method == "Runtime.consoleAPICalled" && (p.Type == "error" || p.Type == "warning"):
		t.complaints = append(t.complaints, fmt.Sprint(p.Args))
	case a.Method == "Log.entryAdded" && (p.Entry.Level == "error" || p.Entry.Level == "warning"):
		t.complaints = append(t.complaints, strings.TrimSpace(p.Entry.Source+": "+p.Entry.Text+" "+strings.TrimPrefix(p.Entry.URL, t.server)))
	}
}

// complained returns what the page has complained of since the last time.
func (t *tab) complained() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.complaints
	t.complaints = nil
	return list
}

// load goes to a page, and waits until it is there and follows events.
func (t *tab) load(path string) {
	t.Helper()
	t.do("Page.navigate", params{"url": t.server + path}, nil)
	t.await(fmt.Sprintf(`location.href === %q && document.readyState === "complete" && document.getElementById("connection")?.textContent === "Live"`, t.server+path))
}

// await waits until an expression is true.
func (t *tab) await(expression string) {
	t.Helper()
	cmdtest.Await(t.T, func() bool {
		is, _ := t.tryEval(expression)
		return is == true
	})
}

// tryEval evaluates an expression in the page. It fails while another page is loaded.
func (t *tab) tryEval(expression string) (any, error) {
	t.Helper()
	var got struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	err := t.try(t.session, "Runtime.evaluate", params{"expression": expression, "returnByValue": true, "awaitPromise": true}, &got)
	if err == nil && got.ExceptionDetails != nil {
		err = fmt.Errorf("%s: %s", expression, got.ExceptionDetails)
	}
	return got.Result.Value, err
}

func (t *tab) eval(expression string) any {
	t.Helper()
	value, err := t.tryEval(expression)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// size sets the size of the window, in CSS pixels.
func (t *tab) size(width, height int, phone bool) {
	t.Helper()
	t.do("Emulation.setDeviceMetricsOverride", params{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}, nil)
}

// theme sets what the person prefers: light or dark.
func (t *tab) theme(name string) {
	t.Helper()
	t.do("Emulation.setEmulatedMedia", params{"features": []params{{"name": "prefers-color-scheme", "value": name}}}, nil)
}

// press presses a key that types nothing.
func (t *tab) press(key string, code int) {
	t.Helper()
	for _, typ := range []string{"rawKeyDown", "keyUp"} {
		p := params{"type": typ, "key": key, "code": key, "windowsVirtualKeyCode": code}
		if key == "Enter" && typ == "rawKeyDown" {
			p["type"], p["text"] = "keyDown", "\r"
		}
		t.do("Input.dispatchKeyEvent", p, nil)
	}
}

// screenshot writes a picture of the page into a directory.
func (t *tab) screenshot(dir, name string) {
	t.Helper()
	var got struct{ Data string }
	t.do("Page.captureScreenshot", params{"format": "png", "captureBeyondViewport": true}, &got)
	picture, err := base64.StdEncoding.DecodeString(got.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// node is a part of a page as a screen reader is told of it.
type node struct {
	role, name string
	// level of a heading.
	level int
}

// accessible returns the parts of the page that a screen reader is told of, in order.
func (t *tab) accessible() []node {
	t.Helper()
	var tree struct {
		Nodes []struct {
			NodeID     string
			ChildIDs   []string
			Ignored    bool
			Role, Name struct{ Value any }
			Properties []struct {
				Name  string
				Value struct{ Value any }
			}
		}
	}
	t.do("Accessibility.getFullAXTree", nil, &tree)
	at := map[string]int{}
	for i, n := range tree.Nodes {
		at[n.NodeID] = i
	}
	var list []node
	var walk func(i int)
	walk = func(i int) {
		n := tree.Nodes[i]
		if !n.Ignored {
			name, _ := n.Name.Value.(string)
			found := node{role: fmt.Sprint(n.Role.Value), name: strings.TrimSpace(name)}
			for _, p := range n.Properties {
				if level, ok := p.Value.Value.(float64); ok && p.Name == "level" {
					found.level = int(level)
				}
			}
			list = append(list, found)
		}
		for _, child := range n.ChildIDs {
			if j, there := at[child]; there {
				walk(j)
			}
		}
	}
	if len(tree.Nodes) > 0 {
		walk(0)
	}
	return list
}
