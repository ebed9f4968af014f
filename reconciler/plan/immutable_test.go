package plan

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func TestImmutable(t *testing.T) {
	checkRule(t, immutable, []ruleCase{
		{name: "37: another number of members is the business of scale", change: func(s *situation.Situation) { s.Desired.Spec.Replicas = 5 }},
		{name: "what it was made with passes"},
		{name: "without a StatefulSet there is nothing to compare", change: func(s *situation.Situation) { s.Observed.Set = nil }},
		{name: "5: storage and TLS are refused together", change: func(s *situation.Situation) {
			s.Observed.Set.Immutable = []state.Change{{Field: state.FieldSize, Text: "spec.storage.size (2Gi to 1Gi)"}, {Field: state.FieldTLSSecrets, Text: "spec.tls.secrets"}}
		}, want: "Refused: spec.storage.size (2Gi to 1Gi) cannot be changed on a live cluster: no volume shrinks; and spec.tls.secrets cannot be changed on a live cluster: members with Secrets of two authorities"},
		{name: "585: from plain text to TLS with authentication on", change: with(speaking(schema.TLSDisabled, ""), wantsMode(schema.TLSManaged), authenticated), want: "Refused: spec.tls.mode, between plain text and TLS, cannot be changed on a live cluster: with authentication on"},
		{name: "585: in the midst of it", change: with(speaking(schema.TLSDisabled, schema.TLSManaged), wantsMode(schema.TLSDisabled), authenticated), want: "Refused: spec.tls.mode, between"},
		{name: "585: not where the mode stays", change: with(speaking(schema.TLSDisabled, ""), wantsMode(schema.TLSDisabled), authenticated)},
		{name: "585: nor where what members listen to is not known", change: with(wantsMode(schema.TLSDisabled), authenticated)},
		{name: "585: nor where authentication is to be off", change: with(speaking(schema.TLSDisabled, ""), wantsMode(schema.TLSManaged))},
		{name: "5: what nobody has explained is refused all the same", change: func(s *situation.Situation) {
			s.Observed.Set.Immutable = changesOf("spec.later")
		}, want: "Refused: spec.later cannot be changed on a live cluster; revert that part of the file"},
	})
}

func TestStorage(t *testing.T) {
	moved := with(stored, wantsClass(schema.ClassChangeReplace))
	slip := with(stored, wantsClass(schema.ClassChangeReplace), func(s *situation.Situation) { s.Observed.Set.ClaimClass = "slow" })
	back := func(s *situation.Situation) {
		s.Desired.Spec.Storage.StorageClassName, s.Desired.Spec.Storage.ClassChange = new("fast"), ""
	}
	size, class := "Refused: spec.storage.size (8Gi to 4Gi) cannot be changed on a live cluster: no volume shrinks", "spec.storage.storageClassName cannot be changed on a live cluster: a volume stays in its class"
	checkRule(t, storage, []ruleCase{
		{name: "as Git says", change: stored},
		{name: "no class is named", change: with(stored, func(s *situation.Situation) { s.Desired.Spec.Storage.StorageClassName = nil })},
		{name: "another class", change: with(stored, wantsClass("")), want: "Refused: " + class},
		{name: "another class, by new members", change: moved},
		{name: "smaller", change: with(stored, wants("4Gi")), want: size},
		{name: "larger", change: with(stored, wants("16Gi"))},
		{name: "smaller, of another class", change: with(stored, wants("4Gi"), wantsClass("")), want: size + "; and " + class},
		{name: "the class that all volumes have, whatever the StatefulSet asks for", change: with(slip, back)},
		{name: "a class that one volume no longer has", change: with(slip, back, ofVolume(2, func(v *state.Volume) { v.Class = "slow" })), want: "Refused: " + class},
		{name: "a claim without a volume is none", change: with(slip, back, ofVolume(2, func(v *state.Volume) { v.Class, v.Bound = "slow", false }))},
		{name: "nor one that goes", change: with(slip, back, ofVolume(2, func(v *state.Volume) { v.Class, v.Terminating = "slow", true }))},
		{name: "what holds foreign data is no member's", change: with(slip, back, ofVolume(2, func(v *state.Volume) { v.Class, v.Holds = "slow", state.HoldsForeign }))},
		{name: "before a cluster has formed its volumes may still change", change: with(unformed, stored, wantsClass(""))},
		{name: "without a StatefulSet", change: with(stored, wantsClass(""), func(s *situation.Situation) { s.Observed.Set = nil })},
	})
}

// authenticated is a cluster that Git wants authentication for.
func authenticated(s *situation.Situation) {
	s.Desired.Spec.Auth = &schema.AuthSpec{Enabled: new(true)}
}

// 5: every change that the shell calls immutable has its reason and its way.
func TestObstaclesAreExplained(t *testing.T) {
	for _, field := range []string{
		state.FieldSize, state.FieldClass, state.FieldTLSWithAuth, state.FieldTLSSecrets, state.FieldFamily, state.FieldDomain, state.FieldDaemonDomain,
	} {
		change := "some words about " + field
		h := explain([]state.Change{{Field: field, Text: change}}).Hold
		if !strings.HasPrefix(h.Message, change+" cannot be changed on a live cluster: ") || h.Do == "revert that part of the file" {
			t.Errorf("%s: %s", change, h)
		}
	}
}

// changesOf are changes in words that begin with the field.
func changesOf(texts ...string) []state.Change {
	var changes []state.Change
	for _, text := range texts {
		field, _, _ := strings.Cut(text, " (")
		changes = append(changes, state.Change{Field: field, Text: text})
	}
	return changes
}

// textsOf are changes in words.
func textsOf(changes []state.Change) []string {
	var texts []string
	for _, c := range changes {
		texts = append(texts, c.Text)
	}
	return texts
}
