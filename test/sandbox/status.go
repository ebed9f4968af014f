package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
)

// status is what `sandbox status` reports.
type status struct {
	Dir        string          `json:"dir"`
	Kubernetes string          `json:"kubernetes"` // its release
	Kubeconfig string          `json:"kubeconfig"`
	Up         bool            `json:"up"` // every process runs
	Processes  []processStatus `json:"processes"`
	Nodes      []nodeStatus    `json:"nodes"`
}

type processStatus struct {
	Name    string `json:"name"`
	PID     int    `json:"pid,omitempty"`
	Running bool   `json:"running"`
	Log     string `json:"log"`
}

type nodeStatus struct {
	Name      string `json:"name"`
	IP        string `json:"ip"`
	Connected bool   `json:"connected"`
}

func (s *sandbox) status(ctx context.Context, output string) error {
	now := s.currentStatus(ctx)
	switch output {
	case "json":
		encoder := json.NewEncoder(s.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(now)
	case "text":
		return s.printStatus(now)
	default:
		return fmt.Errorf("--output=%s: want text or json", output)
	}
}

func (s *sandbox) currentStatus(ctx context.Context) status {
	now := status{Dir: s.dir, Kubernetes: s.release(), Kubeconfig: s.kubeconfig("admin"), Up: true}
	names := controlPlane()
	for _, n := range s.nodes() {
		names = append(names, n.processes()...)
		now.Nodes = append(now.Nodes, nodeStatus{Name: n.name, IP: n.ip(), Connected: n.connected(ctx)})
	}
	for _, name := range names {
		p := processStatus{Name: name, Log: s.logPath(name)}
		if record, err := readProcess(s.recordPath(name)); err == nil && record.alive() {
			p.PID, p.Running = record.PID, true
		}
		now.Up = now.Up && p.Running
		now.Processes = append(now.Processes, p)
	}
	return now
}

func (s *sandbox) printStatus(now status) error {
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROCESS\tPID\tLOG")
	for _, p := range now.Processes {
		pid := "not running"
		if p.Running {
			pid = fmt.Sprint(p.PID)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", p.Name, pid, p.Log)
	}
	fmt.Fprintln(table, "\nNODE\tADDRESS\tNETWORK")
	for _, n := range now.Nodes {
		network := "cut"
		if n.Connected {
			network = "connected"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", n.Name, n.IP, network)
	}
	fmt.Fprintf(table, "\nKUBERNETES\t%s\n", cmp.Or(now.Kubernetes, "not up"))
	fmt.Fprintf(table, "\nexport KUBECONFIG=%s\n", now.Kubeconfig)
	return table.Flush()
}
