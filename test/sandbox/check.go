package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// checkClaim and checkPod are a claim and a pod that writes to it once it has found the API server's name: what `up`
// tries before it says that all is well.
const (
	checkClaim = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: sandbox-check, namespace: kube-system}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 64Mi}}
`
	checkPod = `apiVersion: v1
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
	// checkDone is the object that says that the check has passed.
	checkDone = `apiVersion: v1
kind: ConfigMap
metadata: {name: sandbox-check, namespace: kube-system}
`
)

// awaitWorking runs a pod through DNS, a volume and a container, once in the
// life of a sandbox.
func (s *sandbox) awaitWorking(ctx context.Context) error {
	const in = "/api/v1/namespaces/kube-system/"
	const claim, pod, done = in + "persistentvolumeclaims/sandbox-check", in + "pods/sandbox-check", in + "configmaps/sandbox-check"
	if err := s.get(ctx, done, nil); !errors.Is(err, errNotFound) {
		return err
	}
	apply := func() error {
		if err := s.apply(ctx, claim, checkClaim); err != nil {
			return err
		}
		return s.apply(ctx, pod, checkPod)
	}
	// The namespace's service account follows a moment after the controllers.
	if err := s.awaitProcess(ctx, "service account", time.Minute, apply, "kube-controller-manager"); err != nil {
		return err
	}
	succeeded := func() error {
		var check struct {
			Status struct {
				Phase      string
				Conditions []struct{ Message string }
			}
		}
		err := s.get(ctx, pod, &check)
		if err == nil && check.Status.Phase != "Succeeded" {
			err = fmt.Errorf("pod kube-system/sandbox-check is %s %v", check.Status.Phase, check.Status.Conditions)
		}
		return err
	}
	if err := s.awaitProcess(ctx, "first pod", 2*time.Minute, succeeded, controlPlane()...); err != nil {
		return err
	}
	for _, path := range []string{pod, claim} {
		if err := s.remove(ctx, path); err != nil {
			return err
		}
	}
	return s.apply(ctx, done, checkDone)
}
