package editor

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// server is a language server, spoken to by JSON-RPC over its standard streams.
type server struct {
	in  io.Writer
	out *textproto.Reader
	id  int
	// yaml are the settings of the editor's user.
	yaml map[string]any
}

// message is a request, a notification or an answer.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// diagnostic is what an editor underlines.
type diagnostic struct {
	Message  string `json:"message"`
	Severity int    `json:"severity"`
	Range    struct {
		Start struct {
			Line int `json:"line"`
		} `json:"start"`
	} `json:"range"`
}

// start runs the program in a folder and greets it. It asks no catalogue of
// schemas in the network.
func start(t *testing.T, program, folder string, settings map[string]any) *server {
	t.Helper()
	// A server that says nothing any more is stopped, which ends the test.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	cmd := exec.CommandContext(ctx, "node", program, "--stdio")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() }) // It was killed, so it ends with an error.
	s := &server{in: in, out: textproto.NewReader(bufio.NewReader(out)), yaml: settings}
	s.yaml["schemaStore"] = map[string]any{"enable": false}
	s.ask(t, "initialize", map[string]any{
		"processId": nil, "rootUri": fileURI(folder),
		"capabilities":     map[string]any{"workspace": map[string]any{"configuration": true}},
		"workspaceFolders": []any{map[string]any{"uri": fileURI(folder), "name": "repository"}},
	})
	s.tell(t, "initialized", map[string]any{})
	s.tell(t, "workspace/didChangeConfiguration", map[string]any{"settings": nil})
	s.await(t, func(m message) bool { return m.Method == "workspace/configuration" })
	return s
}

// fileURI is the address of a file.
func fileURI(path string) string { return "file://" + filepath.ToSlash(path) }

// diagnose opens a document and returns what the server reports about it.
func (s *server) diagnose(t *testing.T, uri, text string) []diagnostic {
	t.Helper()
	s.tell(t, "textDocument/didOpen", map[string]any{"textDocument": map[string]any{
		"uri": uri, "languageId": "yaml", "version": 1, "text": text,
	}})
	var published struct {
		URI         string       `json:"uri"`
		Diagnostics []diagnostic `json:"diagnostics"`
	}
	s.await(t, func(m message) bool {
		if m.Method != "textDocument/publishDiagnostics" {
			return false
		}
		if err := json.Unmarshal(m.Params, &published); err != nil {
			t.Fatal(err)
		}
		return published.URI == uri
	})
	return published.Diagnostics
}

// ask sends a request and waits for the answer.
func (s *server) ask(t *testing.T, method string, params any) {
	t.Helper()
	s.id++
	id := json.RawMessage(strconv.Itoa(s.id))
	s.send(t, message{ID: id, Method: method, Params: encode(t, params)})
	s.await(t, func(m message) bool { return m.Method == "" && string(m.ID) == string(id) })
}

// tell sends a notification.
func (s *server) tell(t *testing.T, method string, params any) {
	t.Helper()
	s.send(t, message{Method: method, Params: encode(t, params)})
}

// await reads messages until one is wanted, and answers the server's questions
// meanwhile.
func (s *server) await(t *testing.T, wanted func(message) bool) {
	t.Helper()
	for {
		m := s.receive(t)
		switch {
		case len(m.Error) > 0:
			t.Fatalf("the language server refuses: %s", m.Error)
		case m.Method == "workspace/configuration":
			s.configure(t, m)
		case m.Method != "" && len(m.ID) > 0:
			s.send(t, message{ID: m.ID, Result: json.RawMessage("null")})
		}
		if wanted(m) {
			return
		}
	}
}

// configure answers which settings there are, section by section.
func (s *server) configure(t *testing.T, question message) {
	t.Helper()
	var params struct {
		Items []struct {
			Section string `json:"section"`
		} `json:"items"`
	}
	if err := json.Unmarshal(question.Params, &params); err != nil {
		t.Fatal(err)
	}
	answers := make([]map[string]any, len(params.Items))
	for i, item := range params.Items {
		answers[i] = map[string]any{}
		if item.Section == "yaml" {
			answers[i] = s.yaml
		}
	}
	s.send(t, message{ID: question.ID, Result: encode(t, answers)})
}

func encode(t *testing.T, value any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (s *server) send(t *testing.T, m message) {
	t.Helper()
	m.Version = "2.0"
	data := encode(t, m)
	if _, err := fmt.Fprintf(s.in, "Content-Length: %d\r\n\r\n%s", len(data), data); err != nil {
		t.Fatal(err)
	}
}

// receive reads one message.
func (s *server) receive(t *testing.T) message {
	t.Helper()
	header, err := s.out.ReadMIMEHeader()
	if err != nil {
		t.Fatalf("the language server ended: %v", err)
	}
	length, err := strconv.Atoi(header.Get("Content-Length"))
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(s.out.R, data); err != nil {
		t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
