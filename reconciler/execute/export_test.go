package execute

import (
	"context"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/schema"
)

func (e *Executor) Note(ctx context.Context, v *observe.View, edit func(*record.Record)) error {
	return e.note(ctx, v, edit)
}

func (e *Executor) NoteIf(ctx context.Context, v *observe.View, edit func(*record.Record) bool) error {
	return e.noteIf(ctx, v, edit)
}

func (e *Executor) DeleteObject(ctx context.Context, v *observe.View, a action.DeleteObject) error {
	return e.deleteObject(ctx, v, a)
}

func (e *Executor) ManifestOf(v *observe.View, a action.TakeBackup) backup.Manifest {
	return snapshotter{e}.manifestOf(v, a)
}

func (e *Executor) OfferBackup(ctx context.Context, v *observe.View, g record.Recovering) error {
	_, err := e.offerBackup(ctx, v, g, true)
	return err
}

func (e *Executor) Rest(ctx context.Context, g *record.Recovering, store backup.Store, a action.BeginRecovery, d schema.RecoverySpec) error {
	return e.rest(ctx, g, store, a, d)
}
