// Package checkout finds this checkout and the programs that its sandbox tool has built.
package checkout

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Root returns the directory of this checkout, found upwards from the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "test", "sandbox", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("find the checkout: run this from inside of it")
		}
	}
	return "", fmt.Errorf("find the checkout: %w", err)
}

// Sandbox returns where `make` puts the sandbox tool, whether it is built or not.
func Sandbox() (string, error) {
	root, err := Root()
	return filepath.Join(root, "bin", "sandbox"), err
}

// Program returns the path of a program that the sandbox tool has built, by the name that its exec-path knows, such
// as etcd-v3.5.35. It builds nothing, because a build takes minutes, during which a test would be silent.
func Program(name string) (string, error) {
	sandbox, err := Sandbox()
	if err != nil {
		return "", err
	}
	out, err := exec.Command(sandbox, "exec-path", name).Output()
	if err != nil {
		return "", fmt.Errorf("needs %s, which is not built: `make servers` builds it", name)
	}
	return strings.TrimSpace(string(out)), nil
}
