package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/naming"
)

// markLimit bounds the time for a mark, which keeps nothing waiting.
const markLimit = 5 * time.Second

// ownPod returns the namespace and the name of quorate's own pod, "" outside of one, as
// deploy/base puts them into its environment.
func ownPod() (namespace, name string) {
	namespace, name = os.Getenv("POD_NAMESPACE"), os.Getenv("POD_NAME")
	if namespace == "" || name == "" {
		return "", ""
	}
	return namespace, name
}

// mark puts naming.LabelActing on quorate's own pod, or takes it off, so that the Service
// quorate leads to the daemon that acts. Each pod marks itself alone: that of a daemon that died
// is not ready, and takes its mark off when it starts again. Nothing that quorate does rests on
// it. Outside of a pod there is nothing to mark.
func mark(ctx context.Context, kube kubernetes.Interface, acts bool, log *slog.Logger) {
	namespace, pod := ownPod()
	if pod == "" {
		return
	}
	value := "null"
	if acts {
		value = `"true"`
	}
	// Also when ctx has ended: then the mark comes off.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), markLimit)
	defer cancel()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, naming.LabelActing, value)
	options := metav1.PatchOptions{FieldManager: naming.FieldManager}
	if _, err := kube.CoreV1().Pods(namespace).Patch(ctx, pod, types.MergePatchType, patch, options); err != nil {
		log.Warn("the Service quorate may lead to a daemon that waits for the lease: quorate's own pod could not be labelled",
			"label", naming.LabelActing, "error", err.Error(), "remedy", "give quorate the Role of deploy/base in its own namespace")
	}
}
