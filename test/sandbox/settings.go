package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// savedSettings are the kernel's settings that kubelet changes for the whole
// machine when they are not as it likes them.
func savedSettings() []string {
	return []string{
		"kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
		"vm/overcommit_memory", "vm/panic_on_oom",
	}
}

// saveSettings notes the settings as they were before the first kubelet.
func (s *sandbox) saveSettings() error {
	path := s.path("settings.json")
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	values := map[string]string{}
	for _, name := range savedSettings() {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if err != nil {
			return fmt.Errorf("save settings: %w", err)
		}
		values[name] = strings.TrimSpace(string(value))
	}
	text, err := json.Marshal(values)
	if err != nil {
		return fmt.Errorf("save settings: %w", err)
	}
	return writeFile(path, string(text))
}

// restoreSettings puts the settings back.
func (s *sandbox) restoreSettings() error {
	text, err := os.ReadFile(s.path("settings.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restore settings: %w", err)
	}
	var values map[string]string
	if err := json.Unmarshal(text, &values); err != nil {
		return fmt.Errorf("restore settings: %w", err)
	}
	for name, value := range values {
		if err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o644); err != nil {
			return fmt.Errorf("restore settings: %w", err)
		}
	}
	return nil
}
