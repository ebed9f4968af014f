package status

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// eventsPath is where the daemon tells of changes.
	eventsPath = "api/v1/events"
	// maxSilence is how long a stream may say nothing: the daemon sends something in each
	// quarter of a minute.
	maxSilence = 45 * time.Second
)

// follow reads the daemon's server-sent events until ctx or they end, and always returns
// why. It calls told when they begin, and at each that concerns what is asked for.
func (d server) follow(ctx context.Context, q query, told func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(maxSilence, cancel)
	defer silence.Stop()
	response, err := d.open(ctx, eventsPath, nil, "text/event-stream")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return fmt.Errorf("follow the daemon: it answers with %q and no events", kind)
	}
	told()
	name, lines := "", bufio.NewScanner(response.Body)
	for lines.Scan() {
		silence.Reset(maxSilence)
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "":
			name = ""
		case "event":
			name = value
		case "data":
			if q.concerns(name, value) {
				told()
			}
		}
	}
	return errors.Join(lines.Err(), errors.New("follow the daemon: the stream has ended"))
}

// concerns reports whether an event is about what is asked for. Of what is known of Git
// nothing is shown.
func (q query) concerns(name, data string) bool {
	switch name {
	case "reset":
		return true
	case "status":
		var change struct{ Kind, Namespace, Name string }
		return json.Unmarshal([]byte(data), &change) != nil || q.names(change.Kind, change.Namespace, change.Name)
	}
	return false
}

// follow follows every daemon that acts. Where one of them ends, all do, since there may
// be another one now.
func (c cluster) follow(ctx context.Context, q query, told func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pods, err := c.ready(ctx)
	if err != nil {
		return err
	}
	var open atomic.Int32
	ended := make(chan error, len(pods))
	for _, pod := range pods {
		go func() { ended <- c.followOne(ctx, pod, q, &open, len(pods), told) }()
	}
	err = <-ended
	cancel()
	for range len(pods) - 1 {
		err = cmp.Or(err, <-ended) // the first one says why
	}
	return err
}

// followOne follows one of several daemons. Nothing is told before all can tell.
func (c cluster) followOne(ctx context.Context, pod corev1.Pod, q query, open *atomic.Int32, all int, told func()) error {
	first := true
	return c.forwarded(ctx, pod, func(d server) error {
		return d.follow(ctx, q, func() {
			if first {
				open.Add(1)
			}
			first = false
			if int(open.Load()) == all {
				told()
			}
		})
	})
}
