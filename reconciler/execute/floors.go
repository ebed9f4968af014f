package execute

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/schema"
)

// noteFloors notes how far the members have written, by what they have answered.
func noteFloors(ctx context.Context, e *Executor, v *observe.View) error {
	return e.note(ctx, v, func(rec *record.Record) { rec.NoteFloors(v.Observed.Round(), e.Now()) })
}

// KeepFloors does so at rest, where what is noted is old: most volumes are put back after
// a stop that nobody has planned. A cluster that nobody writes to has nothing to note.
func KeepFloors(ctx context.Context, e *Executor, v *observe.View) error {
	if v.Record == nil || v.Desired.Spec.Mode == schema.ModeObserve || !v.Record.FloorsDue(v.Observed.Round(), e.Now()) {
		return nil
	}
	if err := e.Lease(v.Cluster.Key()); err != nil {
		return err
	}
	if err := noteFloors(ctx, e, v); err != nil {
		return fmt.Errorf("note how far the members have written: %w", err)
	}
	return nil
}
