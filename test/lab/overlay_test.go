package lab

import "testing"

func TestSplitImage(t *testing.T) {
	for image, want := range map[string][2]string{
		"ghcr.io/quorate/quorate:dev": {"ghcr.io/quorate/quorate", "dev"},
		"registry:5000/quorate":       {"registry:5000/quorate", "latest"},
		"quorate":                     {"quorate", "latest"},
	} {
		if name, tag := splitImage(image); name != want[0] || tag != want[1] {
			t.Errorf("%s: %s, %s", image, name, tag)
		}
	}
}
