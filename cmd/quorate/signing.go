package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/signing"
)

// signingFlags name the keys of backups.
type signingFlags struct {
	key, trusted string
}

func (f *signingFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.key, "backup-signing-key-file", "", "file with the Ed25519 private key in PEM that signs the manifests of backups, as openssl genpkey -algorithm ed25519 makes it; with it, only signed backups are restored; read again when it changes; default none")
	flags.StringVar(&f.trusted, "backup-trusted-keys-file", "", "file with public keys in PEM, of other installations or of former keys, whose backups are restored as well; read again when it changes; default none")
}

// open reads the files.
func (f *signingFlags) open(log *slog.Logger) (*signing.Keys, error) {
	keys, err := signing.OpenKeys(f.key, f.trusted, log)
	if err != nil {
		return nil, fmt.Errorf("--backup-signing-key-file, --backup-trusted-keys-file: %w", err)
	}
	return keys, nil
}

// readSigningKey reads the key of one command, "" for none.
func readSigningKey(flag, file string) (*signing.Key, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	var key *signing.Key
	if err == nil {
		key, err = signing.ParseKey(text)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", flag, err)
	}
	return key, nil
}

// signatureWord is what is known of the signature of a manifest.
func signatureWord(m backup.Manifest) string {
	switch {
	case m.Forged:
		return "signature does not match"
	case m.Signature == nil:
		return "unsigned"
	}
	return "signed by " + m.Signature.Key
}

// shownBackup is a manifest with what is known of its signature, for JSON.
type shownBackup struct {
	backup.Manifest
	// SignatureState is what signatureWord says.
	SignatureState string `json:"signatureState"`
}

func shown(m backup.Manifest) shownBackup { return shownBackup{m, signatureWord(m)} }
