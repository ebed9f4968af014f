package release

// hopRow is one step from a minor to the next.
type hopRow struct {
	// floor is the oldest patch of the old minor that may make the step.
	floor Version
	// advised is the patch of the old minor from which the step is well tried.
	advised Version
	// target is the oldest patch of the new minor that may be stepped to.
	target Version
	// back is the oldest patch of the new minor that etcd's downgrade API takes
	// back to the old one, and zero where there is no such way.
	back Version
	// reads is the oldest line whose log entries the new minor reads, and zero
	// where it reads all.
	reads Version
	// notes hold for every such step; each completes "3.4.34 → 3.5.35: …".
	notes []string
	// source is where the row comes from, for those who check it.
	source string
}

// hopTo finds the step that ends at the minor of to.
func hopTo(to Version) (hopRow, bool) {
	for _, row := range hopRows() {
		if row.target.sameLine(to) {
			return row, true
		}
	}
	return hopRow{}, false
}

// hopRows lists the steps, oldest first. An upgrade guide is the page of that
// minor under etcd.io/docs/v3.7/upgrades; "measured" was seen on real servers.
func hopRows() []hopRow {
	return []hopRow{
		{
			floor: Version{3, 2, 29}, advised: Version{3, 2, 31}, target: Version{3, 3, 0},
			notes:  []string{"with auth enabled, short leases may differ between the members while both versions run: keep the roll short"},
			source: "upgrade guide 3.3; CHANGELOG-3.2.md v3.2.29, PR 11613, and v3.2.31, PR 11691",
		},
		{
			floor: Version{3, 3, 22}, advised: Version{3, 3, 22}, target: Version{3, 4, 0},
			notes:  []string{"3.4 no longer serves the v2 API by default: check that no client uses it"},
			source: "upgrade guide 3.4; CHANGELOG-3.3.md v3.3.22, PR 11924",
		},
		{
			floor: Version{3, 4, 0}, advised: Version{3, 4, 45}, target: Version{3, 5, 0},
			notes:  []string{"a rolling upgrade is unsupported while auth is enabled: if it is, turn it off for the roll, or move the data to a new cluster"},
			source: "upgrade guide 3.5; the upgrade policy, which asks for the newest patch first",
		},
		{
			floor: Version{3, 5, 26}, advised: Version{3, 5, 32}, target: Version{3, 6, 4}, back: Version{3, 6, 0},
			notes:  []string{"3.6 does not start on data of the v2 API: if enable-v2 was ever on, run `etcdutl check v2store` first"},
			source: "upgrade guide 3.6; CHANGELOG-3.5.md v3.5.26, PR 20995; CHANGELOG-3.6.md v3.6.4, PR 20387; the way back measured",
		},
		{
			floor: Version{3, 6, 11}, advised: Version{3, 6, 11}, target: Version{3, 7, 0}, back: Version{3, 7, 2}, reads: Version{3, 6, 0},
			source: "upgrade guide 3.7; CHANGELOG-3.7.md v3.7.2, PR 22201; what it reads and the way back measured (3.5.35 → 3.6.16 → 3.7.3)",
		},
	}
}
