package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// checkObjects are a claim and a pod that writes to it once it has found the
// API server's name: what `up` tries before it says that all is well.
const checkObjects = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: sandbox-check, namespace: kube-system}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 64Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: sandbox-check, namespace: kube-system}
spec:
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 0
  initContainers:
  - name: lookup
    image: ` + probeImage + `
    args: [lookup, kubernetes.default.svc.cluster.local]
  containers:
  - name: write
    image: ` + probeImage + `
    args: [write, /data/file, "1000"]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes:
  - name: data
    persistentVolumeClaim: {claimName: sandbox-check}
`

// awaitWorking runs a pod through DNS, a volume and a container, once in the
// life of a sandbox.
func (s *sandbox) awaitWorking(ctx context.Context) error {
	done, err := s.kubectl(ctx, "get", "configmap", "sandbox-check", "--namespace=kube-system", "--ignore-not-found", "--output=name")
	if err != nil || done != "" {
		return err
	}
	apply := func() error {
		_, err := s.kubectlInput(ctx, checkObjects, "apply", "--filename=-")
		return err
	}
	// The namespace's service account follows a moment after the controllers.
	if err := s.awaitProcess(ctx, "service account", time.Minute, apply, "kube-controller-manager"); err != nil {
		return err
	}
	succeeded := func() error {
		out, err := s.kubectl(ctx, "get", "pod", "sandbox-check", "--namespace=kube-system", "--output=jsonpath={.status.phase} {.status.conditions[*].message}")
		if err == nil && !strings.HasPrefix(out, "Succeeded") {
			err = fmt.Errorf("pod kube-system/sandbox-check is %s", out)
		}
		return err
	}
	if err := s.awaitProcess(ctx, "first pod", 2*time.Minute, succeeded, controlPlane()...); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "delete", "pod/sandbox-check", "pvc/sandbox-check", "--namespace=kube-system"); err != nil {
		return err
	}
	_, err = s.kubectl(ctx, "create", "configmap", "sandbox-check", "--namespace=kube-system")
	return err
}
