package follow

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/sources"
)

// annotationApprove approves one transition, as ParseApproval reads it. It is removed
// when the ConfigMap comes to name another commit.
const annotationApprove = "quorate.dev/approve"

// Approval allows one transition from one commit to another, regardless of history,
// signatures and the number of changed clusters. It is valid once.
type Approval struct {
	// From is the commit in force, and To the one that may follow it, by their full hashes.
	// From is "" where the approval is for whichever is in force.
	From, To string
	// By is how it was given and when, for people; "" where that is unknown.
	By string
}

// between separates the commits of an approval, as it does those of a range in Git.
const between = ".."

// ParseApproval reads FROM..TO, or TO alone; "" is no approval.
func ParseApproval(text string) (Approval, error) {
	if text == "" {
		return Approval{}, nil
	}
	from, to, both := strings.Cut(text, between)
	if !both {
		from, to = "", text
	}
	if !sources.IsHash(to) || both && !sources.IsHash(from) {
		return Approval{}, fmt.Errorf("%q is no approval: give FROM%sTO, all 40 digits of each commit's hash, as the log line of the held commit does", text, between)
	}
	return Approval{From: from, To: to}, nil
}

// String returns what ParseApproval reads.
func (a Approval) String() string {
	if a.From == "" {
		return a.To
	}
	return a.From + between + a.To
}

// at returns the commit that may follow the one in force; "" for none.
func (a Approval) at(inForce string) string {
	if a.From != "" && a.From != inForce {
		return ""
	}
	return a.To
}

// approval returns what a person approved by the annotation, nothing if that cannot be parsed.
func (k store) approval(ctx context.Context) (Approval, error) {
	cm, err := k.kube.CoreV1().ConfigMaps(k.namespace).Get(ctx, k.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Approval{}, nil
	}
	if err != nil {
		return Approval{}, fmt.Errorf("read ConfigMap %s for an approval: %w", k, err)
	}
	a, err := ParseApproval(cm.Annotations[annotationApprove])
	if err != nil {
		return Approval{}, fmt.Errorf("annotation %s of ConfigMap %s: %w", annotationApprove, k, err)
	}
	a.By = annotatedBy(cm)
	return a, nil
}

// annotatedBy returns which client wrote the annotation, and when. The API server keeps no
// more in an object; its audit log has the user.
func annotatedBy(cm *corev1.ConfigMap) string {
	by := "annotation"
	for _, f := range cm.ManagedFields {
		if f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:`+annotationApprove+`"`) {
			by += " by " + f.Manager
			if f.Time != nil {
				by += " at " + f.Time.UTC().Format(time.RFC3339)
			}
		}
	}
	return by
}
