package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

const (
	// pollEvery is the time between two questions where nothing tells of changes, and
	// leastPause the shortest one: a fleet that is upgraded changes all the time.
	pollEvery, leastPause = 2 * time.Second, time.Second
	// resyncEvery is the longest time between two questions: of a daemon that was started
	// meanwhile no stream tells.
	resyncEvery = 30 * time.Second
	// reopenAfter is the pause before a stream that broke is opened again.
	reopenAfter = 5 * time.Second
)

// stream is told of changes by a source, for as long as that can tell.
type stream struct {
	// open is whether it would be told now.
	open atomic.Bool
	// news holds one signal: something may be new.
	news  chan struct{}
	ended chan struct{}
}

// newStream follows a source until ctx ends. A stream that breaks is opened again. Why it
// broke is no news: whoever asks then is told the same.
func newStream(ctx context.Context, from source, q query) *stream {
	s := &stream{news: make(chan struct{}, 1), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		for ctx.Err() == nil {
			_ = from.follow(ctx, q, func() {
				s.open.Store(true)
				s.signal()
			})
			s.open.Store(false)
			s.signal() // what changed since is asked for
			pause(ctx, reopenAfter)
		}
	}()
	return s
}

func (s *stream) signal() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// await waits until something may be new. What was told is the daemon's, so that without
// trust, while something else is shown, it is asked at intervals.
func (s *stream) await(ctx context.Context, trust bool) {
	pause(ctx, leastPause)
	poll := time.NewTicker(pollEvery - leastPause)
	defer poll.Stop()
	resync := time.NewTimer(resyncEvery - leastPause)
	defer resync.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.news:
			return
		case <-resync.C:
			return
		case <-poll.C:
			if !trust || !s.open.Load() {
				return
			}
		}
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// clearScreen moves to the top of a terminal and clears what is below.
const clearScreen = "\x1b[H\x1b[J"

// watch shows what has changed until ctx ends: text on a terminal in place, else as one
// more text or document. An answer that fails is told once, and asked for again.
func watch(ctx context.Context, out, errs io.Writer, f *showFlags, from source, ask query) error {
	ctx, cancel := context.WithCancel(ctx)
	told := newStream(ctx, from, ask)
	defer func() {
		cancel()
		<-told.ended
	}()
	s := screen{out: out, errs: errs, format: f.output, live: cli.IsTerminal(out) && (f.output == cli.Text || f.output == cli.Wide)}
	for ctx.Err() == nil {
		a, err := from.ask(ctx, ask)
		text := ""
		if err == nil {
			text, err = f.render(a, ask)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && s.text == "" {
			return err // a mistake in the command line is no news to wait for
		}
		note := a.note
		if err != nil {
			note, text = err.Error(), s.text
		}
		if err := s.show(text, note); err != nil {
			return err
		}
		told.await(ctx, err == nil && a.whole && a.note == "")
	}
	return nil
}

// screen is what was written last.
type screen struct {
	out, errs io.Writer
	format    string
	// live is whether a text replaces the one before.
	live       bool
	text, note string
}

// show writes what differs from what was written last.
func (s *screen) show(text, note string) error {
	before, noted := s.text, s.note
	s.text, s.note = text, note
	if s.live {
		if text == before && note == noted {
			return nil
		}
		if note != "" {
			text += "\n" + cli.Shown(note) + "\n"
		}
		_, err := io.WriteString(s.out, clearScreen+text)
		return err
	}
	var err error
	if note != noted && note != "" {
		_, err = fmt.Fprintln(s.errs, "quorate:", note)
	}
	if text == before {
		return err
	}
	if before != "" {
		text = s.between() + text
	}
	_, written := io.WriteString(s.out, text)
	return errors.Join(err, written)
}

// between parts two texts, so that a program can tell them apart.
func (s *screen) between() string {
	switch s.format {
	case cli.JSON:
		return ""
	case cli.YAML:
		return "---\n"
	}
	return "\n"
}
