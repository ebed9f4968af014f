package etcd

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/reconciler/starvation"
	"github.com/quorate/quorate/reconciler/state"
)

// heardMetric counts the bytes that a member has received from each other one. The leader
// hears from all within each heartbeat. That a connection is up tells less: from 3.5 on
// etcd says so of a peer that hangs for as long as that does (measured).
const heardMetric = "etcd_network_peer_received_bytes_total"

// askLeader asks the leader how much it has heard from members that do not answer us. Where
// it does not say, that stays unknown.
func askLeader(ctx context.Context, r *state.Round, answers []*answer) {
	lead := r.Leader()
	if lead == nil || !slices.ContainsFunc(r.Members, func(m state.Member) bool { return m.Problem != "" }) {
		return
	}
	i := slices.IndexFunc(answers, func(a *answer) bool { return a.complete() && hexID(a.status.Header.MemberId) == lead.ID })
	if i < 0 {
		return
	}
	heard, err := answers[i].client.heard(ctx)
	if err != nil {
		return
	}
	r.HeardBy = lead.ID
	for i := range r.Members {
		if m := &r.Members[i]; m.Problem != "" {
			m.Heard = heard[m.ID]
		}
	}
}

// heard is how many bytes the member has received from each other one, by ID in
// hexadecimal, by its own metrics.
func (m *Conn) heard(ctx context.Context) (map[string]int64, error) {
	ctx, cancel := starvation.WithTimeout(ctx, askTimeout)
	defer cancel()
	heard := map[string]int64{}
	bad := error(nil)
	err := m.eachMetric(ctx, func(line string) bool {
		rest, found := strings.CutPrefix(line, heardMetric+`{From="`)
		if id, value, ends := strings.Cut(rest, `"} `); found && ends {
			n, err := strconv.ParseFloat(value, 64)
			heard[id], bad = int64(n), err
		}
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return heard, nil
}
