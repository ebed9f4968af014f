package jobs

// What a drill's pod is made of, for tests that run it.
const DrillMember = drillMember

var (
	DrillCompare = drillCompare
	DrillEtcd    = drillEtcd
	DrillURL     = drillURL
)
