package stores

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/naming"
)

// Verdict is what a drill has found about a backup whose store takes no word of it.
type Verdict struct {
	// Time is when the drill was begun.
	Time time.Time `json:"time"`
	// Result is backup.DrillPassed, or a sentence that says what was wrong.
	Result string `json:"result"`
}

// Verdicts are those that a schedule's record keeps, by the object.
type Verdicts map[string]Verdict

// Judged is a backup's manifest with the newest that is known of its drills, by itself or by
// the record.
func (v Verdicts) Judged(m backup.Manifest) backup.Manifest {
	if found, kept := v[m.Object]; kept && !found.Time.Before(m.Drill.Time) {
		m.Drill = backup.Drill{Time: found.Time, Result: found.Result}
	}
	return m
}

// judged are manifests with what the records of the namespace's schedules keep of their
// drills. A record that cannot be read might condemn the newest backup.
func (s Stores) judged(ctx context.Context, namespace string, all []backup.Manifest) ([]backup.Manifest, error) {
	records, err := s.Kube.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: naming.LabelSchedule})
	if err != nil {
		return nil, fmt.Errorf("list the records of the backup schedules: %w", err)
	}
	judged := append([]backup.Manifest(nil), all...)
	for _, r := range records.Items {
		var kept struct {
			Verdicts Verdicts `json:"verdicts"`
		}
		if err := json.Unmarshal([]byte(r.Data[naming.KeyRecord]), &kept); err != nil {
			return nil, fmt.Errorf("what the drills of schedule %s have found is unknown: its record %s/%s is not readable: %w; restore that ConfigMap, or name the backup that you want with spec.source.objectURL", r.Labels[naming.LabelSchedule], namespace, r.Name, err)
		}
		for i, m := range judged {
			judged[i] = kept.Verdicts.Judged(m)
		}
	}
	return judged, nil
}
