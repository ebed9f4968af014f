package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// maxLogLine bounds one line of the daemon's log.
const maxLogLine = 1 << 20

// LogLine is one line of quorate's log in JSON.
type LogLine struct {
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Msg     string    `json:"msg"`
	Cluster string    `json:"cluster"`
	// Request is the EtcdBackup or EtcdBackupSchedule that a line is about.
	Request string `json:"request"`
	// Action is that of a step, and Reason that of a step or a hold.
	Action string `json:"action"`
	Reason string `json:"reason"`
	// Kind and Remedy are those of a hold.
	Kind   string `json:"kind"`
	Remedy string `json:"remedy"`
	// Warning is what a warning about a cluster says.
	Warning string `json:"warning"`
	// Commit is the Git commit, Subject its first line, Version that of etcd.
	Commit  string `json:"commit"`
	Subject string `json:"subject"`
	Version string `json:"version"`
	// Problem is what is wrong in a manifest.
	Problem string `json:"problem"`
	// Error is the text of a failure.
	Error string `json:"error"`
	// Raw is the whole line, the only field of a line that is not JSON.
	Raw string `json:"-"`
}

// ParseLogLine reads a line; one that is not JSON has nothing but Raw.
func ParseLogLine(text string) LogLine {
	var line LogLine
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		line = LogLine{}
	}
	line.Raw = text
	return line
}

// Hold is the text of the hold, or the failure, of a line.
func (l LogLine) Hold() string {
	if l.Error != "" {
		return l.Msg + ": " + l.Error
	}
	if l.Remedy == "" {
		return l.Kind + " hold: " + l.Reason
	}
	return l.Kind + " hold: " + l.Reason + "; " + l.Remedy
}

// Contains matches lines whose raw text has every one of the parts.
func Contains(parts ...string) func(LogLine) bool {
	return func(l LogLine) bool {
		for _, part := range parts {
			if !strings.Contains(l.Raw, part) {
				return false
			}
		}
		return true
	}
}

// Step matches the lines that begin a step whose action contains all parts.
func Step(parts ...string) func(LogLine) bool { return message("step started", parts) }

// Done matches the lines that end a step whose action contains all parts.
func Done(parts ...string) func(LogLine) bool { return message("step done", parts) }

func message(msg string, parts []string) func(LogLine) bool {
	return func(l LogLine) bool {
		for _, part := range parts {
			if !strings.Contains(l.Action, part) {
				return false
			}
		}
		return l.Msg == msg
	}
}

// Idle matches the lines that say that a cluster, as "namespace/name", is what
// Git says, at an etcd version.
func Idle(cluster, version string) func(LogLine) bool {
	return func(l LogLine) bool {
		return l.Msg == "cluster is up to date" && l.Cluster == cluster && l.Version == version
	}
}

// Hold matches the lines that report a hold whose message or advice contains
// all parts.
func Hold(parts ...string) func(LogLine) bool {
	return func(l LogLine) bool {
		for _, part := range parts {
			if !strings.Contains(l.Reason+" "+l.Remedy, part) {
				return false
			}
		}
		return l.Msg == "on hold"
	}
}

// Log collects the lines of a daemon, over its restarts. Its methods may be
// called from any goroutine.
type Log struct {
	mu    sync.Mutex
	lines []LogLine
	// more is closed and replaced with each line.
	more chan struct{}
	each func(LogLine)
}

// NewLog makes a Log that also gives each line to each, which may be nil.
func NewLog(each func(LogLine)) *Log {
	return &Log{more: make(chan struct{}), each: each}
}

// ReadFrom collects lines until r ends.
func (l *Log) ReadFrom(r io.Reader) (int64, error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, maxLogLine)
	var n int64
	for scanner.Scan() {
		n += int64(len(scanner.Bytes())) + 1
		l.Add(ParseLogLine(scanner.Text()))
	}
	return n, scanner.Err()
}

// Add appends a line.
func (l *Log) Add(line LogLine) {
	l.mu.Lock()
	l.lines = append(l.lines, line)
	close(l.more)
	l.more = make(chan struct{})
	l.mu.Unlock()
	if l.each != nil {
		l.each(line)
	}
}

// Mark is the position behind the newest line, for WaitFor and Lines.
func (l *Log) Mark() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines)
}

// Lines are the lines from a position on; 0 is the first.
func (l *Log) Lines(from int) []LogLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]LogLine(nil), l.lines[from:]...)
}

// Last is the newest line that matches.
func (l *Log) Last(match func(LogLine) bool) (LogLine, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.lines) - 1; i >= 0; i-- {
		if match(l.lines[i]) {
			return l.lines[i], true
		}
	}
	return LogLine{}, false
}

// LastHold is the text of the newest hold or failure, or what else the log says
// last.
func (l *Log) LastHold() string {
	if line, ok := l.Last(func(l LogLine) bool { return l.Msg == "on hold" || l.Error != "" }); ok {
		return line.Hold()
	}
	if last, ok := l.Last(func(LogLine) bool { return true }); ok {
		return "no hold; the last line is " + last.Raw
	}
	return "the log is empty"
}

// WaitFor returns the first line from a position on that matches, and the
// position behind it. It waits for at most limit; its error quotes the last
// hold.
func (l *Log) WaitFor(ctx context.Context, from int, limit time.Duration, match func(LogLine) bool) (LogLine, int, error) {
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		l.mu.Lock()
		for ; from < len(l.lines); from++ {
			if line := l.lines[from]; match(line) {
				l.mu.Unlock()
				return line, from + 1, nil
			}
		}
		more := l.more
		l.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return LogLine{}, from, fmt.Errorf("wait for a log line: %w", context.Cause(ctx))
		case <-over.C:
			return LogLine{}, from, fmt.Errorf("no such log line within %s; %w", limit, errors.New(l.LastHold()))
		}
	}
}
