package main

import "testing"

// A link goes by itself some time after the namespace of its other end: that it is gone in
// the midst of its removal is no failure.
func TestALinkThatGoesByItselfIsRemoved(t *testing.T) {
	const link, namespace = "quorate-test0", "quorate-test"
	for range 30 {
		if err := runAll(t.Context(), "ip netns add "+namespace, "ip link add "+link+" type veth peer name other netns "+namespace, "ip netns delete "+namespace); err != nil {
			t.Fatal(err)
		}
		if err := linkDown(t.Context(), link); err != nil {
			t.Fatal(err)
		}
		if linkExists(t.Context(), "", link) {
			t.Fatal("the link is still there")
		}
	}
}
