package report

import (
	"log/slog"
	"testing"

	"github.com/quorate/quorate/reconciler/plan/decision"
)

// 236: who filters a log by its level is told of what wants a person, and no more.
func TestAHoldIsAsLoudAsWhatItSays(t *testing.T) {
	for name, tc := range map[string]struct {
		hold decision.Hold
		want slog.Level
	}{
		"waiting":                     {decision.Hold{Kind: decision.Waiting, Rule: "member"}, slog.LevelInfo},
		"waiting about a quorum":      {decision.Hold{Kind: decision.Waiting, Rule: "recovery"}, slog.LevelInfo},
		"asking once more":            {decision.Hold{Kind: decision.Confirm, Rule: "confirm"}, slog.LevelInfo},
		"only observing":              {decision.Hold{Kind: decision.ObserveOnly, Rule: "observe"}, slog.LevelInfo},
		"an unhealthy member":         {decision.Hold{Kind: decision.Unhealthy, Rule: "health"}, slog.LevelWarn},
		"members out of reach":        {decision.Hold{Kind: decision.Unreachable, Rule: "reachable"}, slog.LevelWarn},
		"a roll that stopped":         {decision.Hold{Kind: decision.Stopped, Rule: "member"}, slog.LevelWarn},
		"a refusal":                   {decision.Hold{Kind: decision.Refused, Rule: "path"}, slog.LevelWarn},
		"a refused recovery":          {decision.Hold{Kind: decision.Refused, Rule: "recovery"}, slog.LevelWarn},
		"a lost quorum":               {decision.Hold{Kind: decision.Unhealthy, Rule: "recovery"}, slog.LevelError},
		"a kind that is not here yet": {decision.Hold{Kind: "New"}, slog.LevelWarn},
	} {
		if got := levelOf(tc.hold); got != tc.want {
			t.Errorf("%s is %s, want %s", name, got, tc.want)
		}
	}
}
