package etcd

import "context"

// SnapshotCounts is how often each member has saved its state since it started, by
// name, of those that report it.
func SnapshotCounts(ctx context.Context, members interface {
	SnapshotCount(ctx context.Context, cluster string, e Endpoint) (int64, error)
}, cluster string, endpoints []Endpoint,
) map[string]int64 {
	counts := make([]int64, len(endpoints))
	known := make([]bool, len(endpoints))
	eachMember(len(endpoints), func(i int) {
		n, err := members.SnapshotCount(ctx, cluster, endpoints[i])
		counts[i], known[i] = n, err == nil
	})
	saved := map[string]int64{}
	for i, e := range endpoints {
		if known[i] {
			saved[e.Member] = counts[i]
		}
	}
	return saved
}
