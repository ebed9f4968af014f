package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/test/lab"
	"github.com/quorate/quorate/test/picture"
)

// outings are when members were away, as their pods show.
type outings struct {
	mu         sync.Mutex
	gone, back map[string]time.Time
}

// watchMembers notes when members are away, until stop is called.
func (d *demo) watchMembers(ctx context.Context) (o *outings, stop func()) {
	o = &outings{gone: map[string]time.Time{}, back: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if ready, err := d.ready(ctx); err == nil {
				o.see(ready, time.Now())
			}
		}
	})
	return o, func() { cancel(); watch.Wait() }
}

// ready reports of each member whether its pod is ready.
func (d *demo) ready(ctx context.Context) (map[string]bool, error) {
	pods, err := d.cluster.Pods(ctx, namespace, clusterName)
	if err != nil {
		return nil, err
	}
	ready := map[string]bool{}
	for i := range members {
		ready[fmt.Sprintf("%s-%d", clusterName, i)] = false
	}
	for i := range pods {
		ready[pods[i].Name] = pods[i].DeletionTimestamp == nil && lab.Ready(&pods[i])
	}
	return ready, nil
}

func (o *outings) see(ready map[string]bool, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, is := range ready {
		switch {
		case !is && o.gone[name].IsZero():
			o.gone[name] = now
		case is && !o.gone[name].IsZero() && o.back[name].IsZero():
			o.back[name] = now
		}
	}
}

// members are those that were away, once and for good.
func (o *outings) members(begin time.Time) (list []picture.Member) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, gone := range o.gone {
		list = append(list, picture.Member{Name: name, At: gone.Sub(begin), Away: o.back[name].Sub(gone)})
	}
	slices.SortFunc(list, func(a, b picture.Member) int { return int(a.At - b.At) })
	return list
}

// steps are those of the plan that have begun since a mark in the log.
func (d *demo) steps(mark int, begin time.Time) (list []picture.Step) {
	for _, l := range d.log.Lines(mark) {
		if l.Msg == "step started" {
			list = append(list, picture.Step{At: l.Time.Sub(begin), Action: l.Action, Reason: l.Reason})
		}
	}
	return list
}

// draw writes the picture of the last upgrade, where one is wanted. All of it went well.
func (d *demo) draw(context.Context) error {
	if d.pictureFile == "" {
		return nil
	}
	svg, err := picture.Draw(d.drawn)
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.pictureFile, svg, 0o644); err != nil {
		return fmt.Errorf("write the picture of the upgrade: %w", err)
	}
	d.Say("%s shows the last upgrade", d.pictureFile)
	return nil
}
