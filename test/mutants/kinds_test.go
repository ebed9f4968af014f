package main

import "testing"

// A test counts as what it does, also where a function that it calls does it.
func TestTestsAreSortedByWhatTheyDo(t *testing.T) {
	kinds, err := tests(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]kind{
		"TestBackup":                                          inTable,
		"TestRotation":                                        inTable,
		"TestTheJudgeOfBackups":                               inTable,
		"TestScenarios":                                       inScenario,
		"TestARevertInTheMiddle":                              inRun,
		"TestAWayThroughSeveralReleases":                      inRun,
		"TestOfflineForecastIsWhatHappens":                    inHistories,
		"TestSimulation":                                      inHistories,
		"TestSurgesKeepOneMemberThatHasEverything":            inHistories,
		"TestModesChangeWhileEverybodyWorks":                  inHistories,
		"TestMutantsOfModesAreCaught":                         inHistories,
		"TestCertificatesOfAllAreTrustedAtEachMoment":         inHistories,
		"TestSwappedPhasesOfCertificatesAreCaught":            inHistories,
		"TestTheOverlapBeginsWhenCopiesAreWritten":            inHistories,
		"TestCertificatesOfBothIssuersAreTrustedAtEachMoment": inHistories,
		"TestSwappedPhasesOfTheIssuerAreCaught":               inHistories,
	} {
		if got, known := kinds[name]; !known || got != want {
			t.Errorf("%s is of kind %s (known: %t), want %s", name, got, known, want)
		}
	}
}
