package capacity

import "testing"

const mib = 1 << 20

func TestVolume(t *testing.T) {
	for _, c := range []struct {
		name                        string
		quota, snapshotCount, least int64
		below                       int64
	}{
		{"etcd's default quota, snapshots of 3.6", 2048 * mib, 10_000, 4500 * mib, 4700 * mib},
		{"snapshots of 3.5: the log is ten times as long", 2048 * mib, 100_000, 5900 * mib, 6100 * mib},
		{"a small quota: the log has its files all the same", 64 * mib, 10_000, 600 * mib, 700 * mib},
		{"a snapshot for each entry: five files are kept", 64 * mib, 1, 600 * mib, 700 * mib},
	} {
		if got := Volume(c.quota, c.snapshotCount); got < c.least || got >= c.below {
			t.Errorf("%s: %d MiB", c.name, got/mib)
		}
	}
}

func TestDefragmentation(t *testing.T) {
	if got := Defragmentation(1280*mib, 1200*mib); got <= 2560*mib || got > 2700*mib {
		t.Errorf("%d MiB", got/mib)
	}
}

func TestQuotaIsTheOneOfTheVolume(t *testing.T) {
	for _, quota := range []int64{64 * mib, 2048 * mib, 8192 * mib} {
		if got := Quota(Volume(quota, 10_000), 10_000); got != quota {
			t.Errorf("%d MiB, not %d", got/mib, quota/mib)
		}
	}
}
