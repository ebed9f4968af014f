package main

import (
	"context"
	"path/filepath"

	"github.com/quorate/quorate/test/lab"
)

// benchEtcd is the release of the member that is backed up, and of etcdctl and
// etcdutl: see etcd/go.mod.
const benchEtcd = "3.6.16"

// tools are the programs that are compared, by their paths.
type tools struct {
	sandbox                                      *lab.Sandbox
	quorate, etcdctl, etcdutl, s3copy, versitygw string
}

// buildTools builds what is not in Go's cache or the sandbox's; what is rebuilt is
// in dir.
func buildTools(ctx context.Context, dir string) (t tools, err error) {
	if t.quorate, err = lab.Binary(ctx); err != nil {
		return tools{}, err
	}
	t.etcdctl, t.etcdutl, t.s3copy = filepath.Join(dir, "etcdctl"), filepath.Join(dir, "etcdutl"), filepath.Join(dir, "s3copy")
	for path, from := range map[string][2]string{
		t.etcdctl: {"test/bench/etcd", "go.etcd.io/etcd/etcdctl/v3"},
		t.etcdutl: {"test/bench/etcd", "go.etcd.io/etcd/etcdutl/v3"},
		t.s3copy:  {".", "./test/bench/s3copy"},
	} {
		if err := lab.GoBuild(ctx, from[0], path, from[1]); err != nil {
			return tools{}, err
		}
	}
	if t.sandbox, err = lab.BuildSandbox(ctx, dir); err != nil {
		return tools{}, err
	}
	if _, err = t.sandbox.Build(ctx, "etcd-v"+benchEtcd); err != nil {
		return tools{}, err
	}
	t.versitygw, err = t.sandbox.Build(ctx, "versitygw")
	return t, err
}
