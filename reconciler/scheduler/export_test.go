package scheduler

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/schema"
)

func (s *Scheduler) Effective(q desired.Backup) schema.Destination { return s.effective(q) }

func (s *Scheduler) FindExternal(ctx context.Context, q desired.Backup) (from source, awaited string, err error) {
	return s.findExternal(ctx, q)
}

func (s *Scheduler) ExternalEndpoint(ctx context.Context, q desired.Backup) (e etcd.Endpoint, awaited string, err error) {
	return s.externalEndpoint(ctx, q)
}

func (s *Scheduler) ReadRequest(ctx context.Context, q desired.Backup) (Record, *corev1.ConfigMap, error) {
	k, err := s.readRequest(ctx, q)
	if err != nil {
		return Record{}, nil, err
	}
	return k.record, k.live, nil
}

// DrillJudged has a drill of a backup end with a result.
func (s *Scheduler) DrillJudged(ctx context.Context, q desired.Backup, objectURL string, since time.Time, j jobs.Judgement) error {
	k, err := s.readRequest(ctx, q)
	if err != nil {
		return err
	}
	k.record.Drill = &begunDrill{Job: "drill", URL: objectURL, Backup: since, Since: since}
	return driller{s}.drillJudged(ctx, q, k, j)
}

func (s *Scheduler) Next(ctx context.Context) bool { return s.queue.Next(ctx, handler{s}) }

func (s *Scheduler) Queue() queue.Queue { return s.queue }
