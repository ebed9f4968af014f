package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"
)

// held is what the watches of a process keep to themselves: the event of one write.
type held struct {
	// skip drops it when the next change of the object comes; else that waits, too.
	skip bool

	mu sync.Mutex
	// key is the object, from is what its version was after the write, 0 while that is not
	// known, and until is when its events are told.
	key   string
	from  int64
	until time.Time
}

// hold holds back what is told of an object from now on.
func (h *held) hold(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.key, h.from, h.until = key, 0, time.Now().Add(heldFor)
}

// since says what the version of the object was after the write.
func (h *held) since(key string, version int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.key == key {
		h.from = version
	}
}

// What becomes of an event.
type fate int

const (
	told fate = iota
	kept
	newer // told, and what was kept of the same object is dropped
)

func (h *held) judge(key string, version int64) fate {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.key != key || !time.Now().Before(h.until) || version < h.from:
		return told
	case h.skip && h.from > 0 && version > h.from:
		return newer
	}
	return kept
}

// watch is a watch that keeps events back.
func (h *held) watch(ctx context.Context, resource string, from io.ReadCloser) io.ReadCloser {
	reader, writer := io.Pipe()
	w := &watch{ReadCloser: reader, held: h, resource: resource, from: from, to: writer, stop: make(chan struct{})}
	lines := make(chan []byte)
	go w.read(lines)
	go w.pass(ctx, lines)
	return w
}

// watch is one stream of events, each a line.
type watch struct {
	io.ReadCloser
	held     *held
	resource string
	from     io.ReadCloser
	to       *io.PipeWriter
	once     sync.Once
	stop     chan struct{}
	// late are the lines that wait: all of one object.
	late [][]byte
}

// Close ends the watch behind it, too.
func (w *watch) Close() error {
	w.once.Do(func() { close(w.stop) })
	return errors.Join(w.from.Close(), w.ReadCloser.Close())
}

func (w *watch) read(lines chan<- []byte) {
	defer close(lines)
	for in := bufio.NewReader(w.from); ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		select {
		case lines <- line:
		case <-w.stop:
			return
		}
	}
}

// pass passes the events on, each when it is due.
func (w *watch) pass(ctx context.Context, lines <-chan []byte) {
	defer func() { _ = w.to.Close() }()
	for {
		waiting := w.late
		var again <-chan time.Time
		if len(waiting) > 0 {
			again = time.After(100 * time.Millisecond)
		}
		select {
		case <-w.stop:
			return
		case <-ctx.Done():
			return
		case <-again:
		case line, open := <-lines:
			if !open {
				return
			}
			waiting = append(waiting, line)
		}
		w.late = nil
		for _, line := range w.due(waiting) {
			if _, err := w.to.Write(line); err != nil {
				return
			}
		}
	}
}

// due returns those of some lines that are to be told now, and keeps the others.
func (w *watch) due(lines [][]byte) (due [][]byte) {
	for _, line := range lines {
		var event struct {
			Object object `json:"object"`
		}
		_ = json.Unmarshal(line, &event) // what is no event of an object is told
		switch w.held.judge(w.resource+"/"+event.Object.Metadata.Name, event.Object.version()) {
		case told:
			due = append(due, line)
		case kept:
			w.late = append(w.late, line)
		case newer:
			w.late = nil
			due = append(due, line)
		}
	}
	return due
}
