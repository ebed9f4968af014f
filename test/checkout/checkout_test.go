package checkout_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/test/checkout"
)

func TestRootIsFoundFromBelow(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if root, err := checkout.Root(); err != nil || root != filepath.Dir(filepath.Dir(here)) {
		t.Errorf("root %q, %v", root, err)
	}
	t.Chdir("/")
	if root, err := checkout.Root(); err == nil {
		t.Errorf("root %q outside of the checkout", root)
	}
}

func TestMissingProgramNamesTheTarget(t *testing.T) {
	if path, err := checkout.Program("no-such-program"); err == nil || !strings.Contains(err.Error(), "make servers") {
		t.Errorf("%q, %v", path, err)
	}
}
