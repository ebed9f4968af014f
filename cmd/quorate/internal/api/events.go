package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// heartbeat is the longest time without a byte, so that proxies keep the connection.
	heartbeat = 15 * time.Second
	// writeTime is how long a client may take to read one event.
	writeTime = 10 * time.Second
	// maxStream is how long one request follows events. Then the client asks again, and
	// is let in again, or not.
	maxStream = time.Hour
)

// events follows changes as server-sent events, until the client goes: "status" with a
// Change; "git" when what is known of the repository or of its status branches has changed;
// "reset" when the client was too slow to be told of each change. Each says that the client
// should ask again, for what it shows.
func (h handler) events(w http.ResponseWriter, r *http.Request) {
	s, cancel, err := h.feed.Subscribe()
	if err != nil {
		WriteError(w, http.StatusServiceUnavailable, err)
		return
	}
	defer cancel()
	head(w.Header())
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	to := stream{w, http.NewResponseController(w)}
	if !to.write("retry: 5000\n: connected\n\n") || r.Method == http.MethodHead {
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	end := time.NewTimer(maxStream)
	defer end.Stop()
	for sent := true; sent; {
		select {
		case <-r.Context().Done():
			return
		case <-end.C:
			return
		case c := <-s.Changes:
			sent = to.event("status", c)
		case <-s.Git:
			sent = to.event("git", struct{}{})
		case <-s.Reset:
			sent = to.event("reset", struct{}{})
		case <-beat.C:
			sent = to.write(": still here\n\n")
		}
	}
}

// stream is a connection on which events are sent.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// event sends one event. It returns false when the client does not read.
func (s stream) event(name string, data any) bool {
	text, err := json.Marshal(data)
	return err == nil && s.write(fmt.Sprintf("event: %s\ndata: %s\n\n", name, text))
}

func (s stream) write(text string) bool {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime)) // no test's recorder has one
	if _, err := s.w.Write([]byte(text)); err != nil {
		return false
	}
	return s.control.Flush() == nil
}
