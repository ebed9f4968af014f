package restore

import (
	"testing"

	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }
