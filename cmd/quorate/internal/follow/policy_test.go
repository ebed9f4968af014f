package follow

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/desired/desiredtest"
	"github.com/quorate/quorate/schema"
)

// What is against the policy of the platform is held with its line, and the file of one team
// takes nothing from another one.
func TestAPolicyHoldsWhatATeamMayNotDeclare(t *testing.T) {
	policy, err := schema.ParsePolicy("policy.yaml", []byte(`apiVersion: quorate.dev/v1alpha1
kind: Policy
rules:
- {name: shop, files: [clusters/shop/], namespaces: [shop], limits: {members: 3}}
- {name: lab, files: [clusters/lab/], namespaces: [lab]}
`))
	if err != nil {
		t.Fatal(err)
	}
	f := follow(t)
	f.Commit("clusters/shop/orders.yaml", desiredtest.ClusterFile("orders", "3.6.12"))
	f.Commit("clusters/lab/users.yaml", desiredtest.ClusterFile("users", "3.6.12"))
	f.pollOnce([]string{"shop/orders 3.6.12", "shop/users 3.6.12"}, 0, 0, 0)

	f.policy = policy
	f.restart()
	f.pollOnce([]string{"shop/orders 3.6.12", "shop/users held"}, 0, 1, 0)
	if !strings.Contains(f.log.String(), "policy.yaml:5 (rule lab) does not allow namespace shop") {
		t.Errorf("said\n%s", f.log)
	}

	// The same cluster from the file of another team.
	f.Commit("clusters/lab/users.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.pollOnce([]string{"shop/orders 3.6.12"}, 0, 1, 0)

	f.Commit("clusters/shop/orders.yaml", strings.Replace(desiredtest.ClusterFile("orders", "3.6.16"), "replicas: 3", "replicas: 5", 1))
	f.pollOnce([]string{"shop/orders held"}, 0, 2, 0)
	f.Commit("clusters/shop/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 1, 0)
}
