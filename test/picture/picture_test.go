package picture_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/test/picture"
)

var update = flag.Bool("update", false, "draw docs/upgrade.svg anew, of the same upgrade")

// The picture of the README is as it would be drawn today. Whether what it shows still happens, TestUpgradeChain
// compares with a real upgrade.
func TestThePictureOfTheREADMEIsDrawnByThis(t *testing.T) {
	svg, err := os.ReadFile("../../docs/upgrade.svg")
	if err != nil {
		t.Fatal(err)
	}
	u, err := picture.Read(svg)
	if err != nil {
		t.Fatal(err)
	}
	again, err := picture.Draw(u)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("../../docs/upgrade.svg", again, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(svg, again) {
		t.Error("docs/upgrade.svg was drawn by another version of this package: go test ./test/picture -update")
	}
}

// What is written in a picture is text, whatever it holds, and is read back as it was.
func TestTextsStayTexts(t *testing.T) {
	u := picture.Upgrade{
		Cluster: "demo/orders", From: "3.5.35", To: "3.6.16", Commit: "0123456", Subject: `</metadata><script>"&`, Took: time.Minute,
		Steps:   []picture.Step{{At: time.Second, Action: "restart <orders-2>", Reason: strings.Repeat("é", 200)}},
		Members: []picture.Member{{Name: "orders-2", At: 2 * time.Second, Away: 0}},
	}
	svg, err := picture.Draw(u)
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "script" {
			t.Error("a text has become an element")
		}
	}
	back, err := picture.Read(svg)
	if err != nil || back.Subject != u.Subject || back.Steps[0] != u.Steps[0] || back.Members[0] != u.Members[0] {
		t.Errorf("read back: %+v, %v", back, err)
	}
	if strings.Contains(string(svg), strings.Repeat("é", 70)+"<") {
		t.Error("a long reason is drawn beyond the edge")
	}
	if _, err := picture.Read([]byte("<svg/>")); err == nil {
		t.Error("a picture without data is read")
	}
}
