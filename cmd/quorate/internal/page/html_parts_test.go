package page

import (
	"fmt"
	"html"
	"testing"
)

// No text from a status or from Git makes a link that runs something or leaves this server.
func TestLinksLeadOnlyToThisServer(t *testing.T) {
	for address, want := range map[string]string{
		"/":           "/",
		"#places":     "#places",
		"/git":        "/git",
		"/?page=2":    "/?page=2",
		"/a b":        "/a%20b",
		`/"><script>`: "/%22%3E%3Cscript%3E",
		"/objects/EtcdCluster/shop/orders?branch=quorate%2Fstatus-eu": "/objects/EtcdCluster/shop/orders?branch=quorate%2Fstatus-eu",
		"/javascript:alert(1)":     "/javascript:alert(1)",
		`/\evil.example`:           "/%5Cevil.example",
		"":                         "#",
		"javascript:alert(1)":      "#",
		" javascript:alert(1)":     "#",
		"JaVaScRiPt:alert(1)":      "#",
		"java\nscript:alert(1)":    "#",
		"data:text/html,x":         "#",
		"https://evil.example":     "#",
		"//evil.example":           "#",
		"////evil.example":         "#",
		`\\evil.example`:           "#",
		"/%zz":                     "#",
		"evil.example/javascript:": "#",
	} {
		if got := html.UnescapeString(fmt.Sprint(href(address))); got != ` href="`+want+`"` {
			t.Errorf("%q becomes%s, want %q", address, got, want)
		}
	}
	named := pathOf("EtcdCluster", "shop", "a?b#c/../d%")
	if want := "/objects/EtcdCluster/shop/a%3Fb%23c%2F..%2Fd%25"; named != want || fmt.Sprint(href(named)) != ` href="`+want+`"` {
		t.Errorf("the path is %s, and the link %s, want %s", named, href(named), want)
	}
}
