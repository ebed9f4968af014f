package record_test

import (
	"testing"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/record/recordtest"
	"github.com/quorate/quorate/reconciler/state"
)

// The record goes into pods: who owns a cluster must restart none.
func TestOwnerIsNoKeyForEtcd(t *testing.T) {
	before := recordtest.Stored(recordtest.Formed())
	r := recordtest.Formed()
	r.Owner = record.OwnerRecord(state.Owner{Source: "https://git.example.com/etcd.git@main:clusters", Instance: "default", Claim: 1})
	after := recordtest.Stored(r)
	for key := range before.Data {
		if key != naming.KeyRecord && before.Data[key] != after.Data[key] {
			t.Errorf("%s was %q and is %q", key, before.Data[key], after.Data[key])
		}
	}
	if len(before.Data) != len(after.Data) || after.Data[naming.KeyRecord] == before.Data[naming.KeyRecord] {
		t.Error("the owner is not in the record alone")
	}
}
