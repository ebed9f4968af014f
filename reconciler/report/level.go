package report

import (
	"log/slog"

	"github.com/quorate/quorate/reconciler/plan/decision"
)

// levelOf is how loud a hold is: what ends on its own is information, a lost quorum is
// an error, and whatever else wants a person is a warning.
func levelOf(h decision.Hold) slog.Level {
	switch h.Kind {
	case decision.Waiting, decision.Confirm, decision.ObserveOnly:
		return slog.LevelInfo
	case decision.Unhealthy:
		if h.Rule == decision.RuleRecovery || h.Rule == decision.RuleRemedy {
			return slog.LevelError
		}
	case decision.Unreachable, decision.Stopped, decision.Refused:
	}
	return slog.LevelWarn
}
