package plan

// volumeMoves are the ways to lose the data of a member. Before the IDs are
// recorded it would be unknown.
func (w *world) volumeMoves(all []move, i int8) []move {
	c := &w.claims[i]
	switch {
	case !w.record.formed || !c.there || c.data == 0:
	case c.pinned || c.unheard:
		all = append(all, move{nodeComesBack, i})
	case c.corrupt:
	case c.older:
		all = append(all, move{volumeIsNewer, i}, move{volumeIsLost, i})
	case c.data == strangers:
		all = append(all, move{volumeIsLost, i}, move{nodeIsLost, i})
	default:
		if s := w.pods[i].state; !c.terminating && s != podAbsent && s != podStopping {
			all = append(all, move{claimIsDeleted, i})
		}
		cordon := move{nodeIsShut, i}
		if c.shut {
			cordon.kind = nodeIsOpened
		}
		all = append(all, move{volumeIsLost, i}, move{volumeIsSpoilt, i}, move{nodeIsLost, i}, move{volumeIsSwapped, i}, move{nodeIsUnheard, i}, cordon)
		if c.data == w.record.members[i] { // nothing is noted of a learner
			all = append(all, move{volumeIsOlder, i})
		}
	}
	return all
}

// loses reports whether a move takes a member's data permanently.
func (m move) loses() bool {
	return m.kind == claimIsDeleted || m.kind == volumeIsLost || m.kind == volumeIsSpoilt || m.kind == volumeIsSwapped || m.kind == volumeIsOlder || m.kind == nodeIsLost
}

// applyToVolume lets something happen to a volume.
func (w *world) applyToVolume(m move) string {
	c, p := &w.claims[m.i], &w.pods[m.i]
	switch m.kind {
	case claimIsGone:
		*c = fakeClaim{}
	case claimIsDeleted:
		c.terminating = true
	case claimIsMade:
		w.makeClaim(m.i)
	case volumeIsLost:
		*c, *p = fakeClaim{}, fakePod{}
	case volumeIsSpoilt:
		c.corrupt = true
		w.rebornPod(m.i)
	case volumeIsSwapped:
		w.makeClaim(m.i)
		c.data, c.pending = strangers, false
		w.rebornPod(m.i)
	case volumeIsOlder:
		c.older = true
		w.rebornPod(m.i)
	case volumeIsNewer:
		c.older = false
	case nodeIsLost:
		c.pinned = true
		w.rebornPod(m.i)
	case nodeComesBack:
		c.pinned, c.unheard = false, false
	case nodeIsUnheard:
		c.unheard, c.since = true, w.clock
	case nodeIsShut, nodeIsOpened:
		c.shut = m.kind == nodeIsShut
	case volumeGrows:
		c.grown = true
	case volumeIsMade:
		c.pending = false
	default:
	}
	return w.vote()
}

// rebornPod is what is left where a pod has ended and does not start again.
func (w *world) rebornPod(i int8) {
	w.claims[i].since = w.clock
	if w.pods[i].state != podAbsent {
		template := w.pods[i].template
		w.uids++
		if w.pods[i] = (fakePod{}); !w.set.there {
			return // nobody makes another one
		}
		w.pods[i] = fakePod{state: podStarting, template: template, uid: w.uids, created: w.clock}
	}
}

func (w *world) makeClaim(i int8) {
	w.uids++
	w.claims[i] = fakeClaim{there: true, uid: w.uids, since: w.clock, created: w.clock, large: w.set.large, grown: w.set.large, fast: w.set.fast, pending: !w.makes(w.set.fast)}
}
