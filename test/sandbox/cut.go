package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// cniResults is where the CNI library keeps what it did for each pod. It takes
// no other place.
const cniResults = "/var/lib/cni/results"

func (s *sandbox) cutNode(ctx context.Context, name string) error {
	return s.connectNode(ctx, name, false)
}

func (s *sandbox) healNode(ctx context.Context, name string) error {
	return s.connectNode(ctx, name, true)
}

func (s *sandbox) connectNode(ctx context.Context, name string, connected bool) error {
	n, err := s.node(name)
	if err != nil {
		return err
	}
	return n.setConnected(ctx, connected)
}

func (s *sandbox) cutPod(ctx context.Context, pod string) error {
	return s.connectPod(ctx, pod, "down")
}

func (s *sandbox) healPod(ctx context.Context, pod string) error {
	return s.connectPod(ctx, pod, "up")
}

// connectPod sets the node's end of the pod's link up or down. A pod that is
// made anew has a new link, so no cut outlives its pod.
func (s *sandbox) connectPod(ctx context.Context, pod, state string) error {
	namespace, name, err := splitName(pod)
	if err != nil {
		return err
	}
	var object struct {
		Spec   struct{ NodeName string }
		Status struct{ PodIP string }
	}
	if err := s.get(ctx, "/api/v1/namespaces/"+namespace+"/pods/"+name, &object); err != nil {
		return err
	}
	if object.Status.PodIP == "" {
		return fmt.Errorf("pod %s has no address yet", pod)
	}
	n, err := s.node(object.Spec.NodeName)
	if err != nil {
		return err
	}
	link, err := n.podLink(ctx, object.Status.PodIP)
	if err != nil {
		return fmt.Errorf("pod %s: %w", pod, err)
	}
	return runAll(ctx, "ip -n "+n.namespace()+" link set "+link+" "+state)
}

// cniResult is the part of a CNI result that says which link has which address.
type cniResult struct {
	Result struct {
		Interfaces []struct {
			Name    string `json:"name"`
			Sandbox string `json:"sandbox"`
		} `json:"interfaces"`
		IPs []struct {
			Address string `json:"address"`
		} `json:"ips"`
	} `json:"result"`
}

// cniResultsBelow returns the results that mention this directory, by path:
// they are of pods whose network namespace is in it.
func cniResultsBelow(dir string) (map[string][]byte, error) {
	paths, err := filepath.Glob(filepath.Join(cniResults, "*"))
	if err != nil {
		return nil, fmt.Errorf("list pod links: %w", err)
	}
	results := map[string][]byte{}
	for _, path := range paths {
		// One that is gone by now belongs to a pod that has just ended.
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(`"`+dir+"/")) {
			results[path] = text
		}
	}
	return results, nil
}

// podLink returns the node's end of the link of the pod with this address. An
// address may have had other pods before; their links are gone.
func (n node) podLink(ctx context.Context, ip string) (string, error) {
	results, err := cniResultsBelow(n.path())
	if err != nil {
		return "", err
	}
	for path, text := range results {
		var r cniResult
		if err := json.Unmarshal(text, &r); err != nil {
			return "", fmt.Errorf("read pod link %s: %w", path, err)
		}
		if link := r.link(ip); link != "" && linkExists(ctx, n.namespace(), link) {
			return link, nil
		}
	}
	return "", fmt.Errorf("no link on %s has the address %s", n.name, ip)
}

// link returns the node's end of the link if the address is this one. Of the
// interfaces it is the one outside the pod that is not the bridge.
func (r cniResult) link(ip string) string {
	for _, address := range r.Result.IPs {
		if !strings.HasPrefix(address.Address, ip+"/") {
			continue
		}
		for _, i := range slices.Backward(r.Result.Interfaces) {
			if i.Sandbox == "" && i.Name != "cni0" {
				return i.Name
			}
		}
	}
	return ""
}
