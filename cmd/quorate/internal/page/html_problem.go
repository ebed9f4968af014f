package page

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

// problemPage says why there is no other page.
func problemPage(message string) Node {
	return Group{
		P(Data("live", "problem"), Text(message)),
		P(A(href("/"), Text("All clusters"))),
	}
}
