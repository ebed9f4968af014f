package drift_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/drift"
)

func meddling(fields ...string) drift.Drift { return drift.Drift{Fields: fields, Manager: "meddler"} }

// 50: three times within ten minutes is a fight; then each truce is twice as long
// as the one before, up to a bound.
func TestFightBacksOff(t *testing.T) {
	var f drift.Fights
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var truces []time.Duration
	for range 8 {
		f.Corrected("shop/orders", "Service orders", meddling("spec.type"), now)
		if fight := f.Find("shop/orders", "Service orders", meddling("spec.type")); fight != nil {
			truces = append(truces, fight.Until.Sub(now))
			now = fight.Until
		}
		now = now.Add(time.Second)
	}
	want := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 16 * time.Minute}
	if !slices.Equal(truces, want) {
		t.Errorf("truces %v, want %v", truces, want)
	}
}

func TestWhatIsNoFight(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, correct := range map[string]func(f *drift.Fights){
		"now and then": func(f *drift.Fights) {
			for i := range 10 {
				f.Corrected("shop/orders", "Service orders", meddling("spec.type"), start.Add(time.Duration(i)*6*time.Minute))
			}
		},
		"twice": func(f *drift.Fights) {
			f.Corrected("shop/orders", "Service orders", meddling("spec.type"), start)
			f.Corrected("shop/orders", "Service orders", meddling("spec.type"), start)
		},
		"several fields": func(f *drift.Fights) {
			for _, field := range []string{"a", "b", "c", "spec.type"} {
				f.Corrected("shop/orders", "Service orders", meddling(field), start)
			}
		},
		"several objects": func(f *drift.Fights) {
			for _, object := range []string{"Service a", "Service b", "Service orders"} {
				f.Corrected("shop/orders", object, meddling("spec.type"), start)
			}
		},
		"several managers": func(f *drift.Fights) {
			for _, manager := range []string{"kubectl-edit", "helm", "meddler"} {
				f.Corrected("shop/orders", "Service orders", drift.Drift{Fields: []string{"spec.type"}, Manager: manager}, start)
			}
		},
		"several clusters": func(f *drift.Fights) {
			for _, cluster := range []string{"shop/a", "shop/b", "shop/orders"} {
				f.Corrected(cluster, "Service orders", meddling("spec.type"), start)
			}
		},
		"long ago": func(f *drift.Fights) {
			for range 3 {
				f.Corrected("shop/orders", "Service orders", meddling("spec.type"), start)
			}
			f.Corrected("shop/orders", "Service orders", meddling("spec.type"), start.Add(12*time.Minute))
		},
		"a forgotten cluster": func(f *drift.Fights) {
			for range 5 {
				f.Corrected("shop/orders", "Service orders", meddling("spec.type"), start)
			}
			f.Forget("shop/orders")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var f drift.Fights
			correct(&f)
			if fight := f.Find("shop/orders", "Service orders", meddling("spec.type")); fight != nil {
				t.Errorf("got %+v", fight)
			}
		})
	}
}
