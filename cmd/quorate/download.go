package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// errStalled says that a store went silent.
var errStalled = errors.New("the store has sent nothing for too long")

// finalError is one that asking again does not help.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// opener asks for an object from a byte on, and says at which byte what comes begins.
type opener func(ctx context.Context, from int64) (body io.ReadCloser, begins int64, err error)

// download reads an object to its end, across the store's troubles: it asks again,
// later each time, for what is still missing.
type download struct {
	ctx    context.Context
	open   opener
	size   int64
	limits patience
	log    io.Writer
	// at is how many bytes were read, and since is when the last one came.
	at    int64
	since time.Time
	// from is what is being read, nil for nothing.
	from *attempt
	// err is the trouble that ended it.
	err error
}

// Read implements io.Reader.
func (d *download) Read(p []byte) (int, error) {
	for wait := d.limits.first; ; wait = min(2*wait, d.limits.most) {
		n, err := d.try(p)
		switch {
		case n > 0:
			d.at, d.since = d.at+int64(n), time.Now()
			return n, nil
		case err == nil || errors.Is(err, io.EOF):
			return 0, err
		}
		d.drop()
		if final := (finalError{}); errors.As(err, &final) || d.ctx.Err() != nil || time.Since(d.since) >= d.limits.giveUp {
			d.err = err
			return 0, err
		}
		if d.log != nil {
			_, _ = fmt.Fprintf(d.log, "quorate: fetch the backup: %v; it is tried again in %s, from byte %d on\n", err, wait, d.at)
		}
		select {
		case <-d.ctx.Done():
		case <-time.After(wait):
		}
	}
}

// try reads on, and asks for the object where nothing is being read.
func (d *download) try(p []byte) (n int, err error) {
	if d.from == nil {
		if d.at > 0 && d.at == d.size {
			return 0, io.EOF
		}
		if d.from, err = attemptAt(d.ctx, d.open, d.at, d.limits.stall); err != nil {
			return 0, err
		}
	}
	return d.from.read(p)
}

// drop closes what is being read.
func (d *download) drop() {
	if d.from != nil {
		_ = d.from.body.Close()
		d.from.cancel(nil)
	}
	d.from = nil
}

// attempt is one answer of the store.
type attempt struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	stall  time.Duration
	body   io.ReadCloser
	// skip is how much of it was read before.
	skip int64
}

// attemptAt asks for the object from a byte on.
func attemptAt(ctx context.Context, open opener, at int64, stall time.Duration) (*attempt, error) {
	a := &attempt{stall: stall}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	err := a.listen(func() (err error) {
		var begins int64
		a.body, begins, err = open(a.ctx, at)
		a.skip = at - begins
		return err
	})
	if err != nil {
		a.cancel(nil)
		return nil, err
	}
	return a, nil
}

// read reads what was not read before.
func (a *attempt) read(p []byte) (n int, err error) {
	for a.skip > 0 && err == nil {
		err = a.listen(func() (err error) {
			n, err = a.body.Read(p[:min(int64(len(p)), a.skip)])
			return err
		})
		a.skip -= int64(n)
	}
	if a.skip > 0 {
		return 0, fmt.Errorf("the store sends less than before: %w", io.ErrUnexpectedEOF)
	}
	err = a.listen(func() (err error) {
		n, err = a.body.Read(p)
		return err
	})
	return n, err
}

// listen ends what the store takes too long for.
func (a *attempt) listen(do func() error) error {
	if a.stall > 0 {
		silence := time.AfterFunc(a.stall, func() { a.cancel(errStalled) })
		defer silence.Stop()
	}
	err := do()
	if err != nil && !errors.Is(err, io.EOF) && errors.Is(context.Cause(a.ctx), errStalled) {
		return errStalled
	}
	return err
}
