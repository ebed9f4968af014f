// Package editor tests the JSON Schemas in a real language server for YAML, the
// one in VS Code, Neovim and others: what does an author see while typing? It
// needs npm, which installs the version that package-lock.json pins.
package editor
