package lab

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// heartbeat is how often a wait reports that it continues: often enough that a
// person, or a CI system, does not take it for stuck.
const heartbeat = 10 * time.Second

// pollInterval is how often a wait polls. A poll is one small request.
const pollInterval = 250 * time.Millisecond

// Progress prints timed lines. Its methods may be called from any goroutine.
type Progress struct {
	mu     sync.Mutex
	out    io.Writer
	begin  time.Time
	colour bool
	// last is when the newest line was printed.
	last time.Time
}

// NewProgress prints to out, with colours when that is a terminal and NO_COLOR
// is not set. Times count from now.
func NewProgress(out io.Writer) *Progress {
	return &Progress{out: out, begin: time.Now(), colour: isTerminal(out) && os.Getenv("NO_COLOR") == ""}
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Say prints one line.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	at := p.paint("2", p.At(p.last))
	_, _ = fmt.Fprintf(p.out, "%s %s\n", at, fmt.Sprintf(format, args...))
}

// Head prints an empty line and a line that begins a section.
func (p *Progress) Head(format string, args ...any) {
	p.mu.Lock()
	_, _ = fmt.Fprintln(p.out)
	p.mu.Unlock()
	p.Say("%s", p.Bold(fmt.Sprintf(format, args...)))
}

// At is a time as the lines show it.
func (p *Progress) At(t time.Time) string {
	return fmt.Sprintf("[%6.1fs]", t.Sub(p.begin).Seconds())
}

// Elapsed is the time since NewProgress.
func (p *Progress) Elapsed() time.Duration { return time.Since(p.begin) }

// Bold makes text bold on a terminal.
func (p *Progress) Bold(text string) string { return p.paint("1", text) }

// Good marks text as good news on a terminal.
func (p *Progress) Good(text string) string { return p.paint("32", text) }

// Bad marks text as bad news on a terminal.
func (p *Progress) Bad(text string) string { return p.paint("31", text) }

// Faint makes text faint on a terminal.
func (p *Progress) Faint(text string) string { return p.paint("2", text) }

func (p *Progress) paint(code, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Do runs something that takes a while: it says that it begins, when nothing
// else is reported that it continues, and how long it took. The error of do is
// returned unchanged.
func (p *Progress) Do(what string, do func() error) error {
	begin := time.Now()
	p.Say("%s …", what)
	if err := p.While(what, func() string { return "" }, do); err != nil {
		return err
	}
	p.Say("%s … done in %.1fs", what, time.Since(begin).Seconds())
	return nil
}

// While is Do without its first and last line, and with a state to show while it
// runs.
func (p *Progress) While(what string, state func() string, do func() error) error {
	begin := time.Now()
	defer p.beat(func() string {
		text := fmt.Sprintf("%s … since %.0fs", what, time.Since(begin).Seconds())
		if now := state(); now != "" {
			text += ": " + now
		}
		return text
	})()
	return do()
}

// Wait polls until check reports true. The state that check
// returns is shown meanwhile, and in the error when limit is over. An
// error of check ends the wait.
func (p *Progress) Wait(ctx context.Context, what string, limit time.Duration, check func(context.Context) (done bool, state string, err error)) error {
	begin, mu, last := time.Now(), sync.Mutex{}, "nothing yet"
	p.Say("waiting for %s …", what)
	state := func() string { mu.Lock(); defer mu.Unlock(); return last }
	err := p.While("waiting for "+what, state, func() error {
		return Poll(ctx, limit, func(ctx context.Context) (bool, error) {
			done, now, err := check(ctx)
			mu.Lock()
			defer mu.Unlock()
			if now != "" {
				last = now
			}
			return done, err
		})
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w (last seen: %s)", what, err, state())
	}
	p.Say("%s after %.1fs", what, time.Since(begin).Seconds())
	return nil
}

// beat prints a line whenever nothing was said for a heartbeat, until the
// returned function is called, which returns when no more will be printed.
func (p *Progress) beat(line func() string) (stop func()) {
	ended := make(chan struct{})
	var beats sync.WaitGroup
	beats.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				if p.silence() >= heartbeat {
					p.Say("%s", p.Faint(line()))
				}
			}
		}
	})
	return func() { close(ended); beats.Wait() }
}

// silence is the time since the newest line.
func (p *Progress) silence() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.last)
}

// Poll calls check at once and then four times a second until it reports true,
// returns an error, or limit is over.
func Poll(ctx context.Context, limit time.Duration, check func(context.Context) (bool, error)) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		done, err := check(limited)
		if err != nil && limited.Err() == nil {
			return err
		}
		if done && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("interrupted: %w", context.Cause(ctx))
		case <-limited.Done():
			return fmt.Errorf("not within %s", limit)
		case <-ticker.C:
		}
	}
}
