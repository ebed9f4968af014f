package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// memberWatch polls the member list, often enough to see every change that a
// careful quorate makes.
type memberWatch struct {
	mu sync.Mutex
	// seen are the sizes that the list went through, as in "3", "3+1 learner", "4".
	seen     []string
	problems []string
}

// watchMembers begins to poll; it ends with the test.
func (w *world) watchMembers() *memberWatch {
	w.Helper()
	client, err := w.cluster.Dial(w.Context(), w.namespace, name)
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	m, ended := &memberWatch{}, make(chan struct{})
	go func() {
		defer close(ended)
		m.run(ctx, client)
	}()
	w.Cleanup(func() { cancel(); <-ended; _ = client.Close() })
	return m
}

func (m *memberWatch) run(ctx context.Context, client *clientv3.Client) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	voters := -1
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, 2*time.Second)
		list, err := client.MemberList(limited)
		cancel()
		if err == nil { // without a leader there is no list, and no change of it
			voters = m.see(list.Members, voters)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// see takes in one list, and returns how many voters it has.
func (m *memberWatch) see(list []*etcdserverpb.Member, before int) (voters int) {
	learners := 0
	for _, member := range list {
		if member.IsLearner {
			learners++
		}
	}
	voters = len(list) - learners
	size := fmt.Sprint(voters)
	if learners > 0 {
		size += fmt.Sprintf("+%d", learners)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.seen); n == 0 || m.seen[n-1] != size {
		m.seen = append(m.seen, size)
	}
	if learners > 1 {
		m.problems = append(m.problems, fmt.Sprintf("%d learners at once", learners))
	}
	if before >= 0 && max(voters-before, before-voters) > 1 {
		m.problems = append(m.problems, fmt.Sprintf("%d voters became %d at once", before, voters))
	}
	return voters
}

// expectSizes wants the member list to have gone through exactly these sizes
// since the last call; the last one is also the first of the next call.
func (w *world) expectSizes(m *memberWatch, want ...string) {
	w.Helper()
	last := want[len(want)-1]
	w.eventually("the watch to see "+last, holdLimit, func(context.Context) (bool, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.seen) > 0 && m.seen[len(m.seen)-1] == last, nil
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Equal(m.seen, want) {
		w.Errorf("the member list went through %s, want %s", strings.Join(m.seen, " "), strings.Join(want, " "))
	}
	for _, p := range m.problems {
		w.Error(p)
	}
	m.seen, m.problems = []string{last}, nil
}
