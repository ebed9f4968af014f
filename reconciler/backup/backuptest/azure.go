package backuptest

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

//go:embed azurite/package.json azurite/package-lock.json
var azuritePackage embed.FS

// azurite is the program of Azure's own emulator, which npm installs once, at the
// versions of the lock file, and which is kept in the user's cache.
func azurite() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	lock, err := azuritePackage.ReadFile("azurite/package-lock.json")
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, "quorate", "azurite-"+hex.EncodeToString(sum[:4]))
	program := filepath.Join(dir, "node_modules", "azurite", "dist", "src", "blob", "main.js")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	// What is cut off must not be taken for installed.
	draft, err := os.MkdirTemp(filepath.Join(cache, "quorate"), "azurite-draft-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(draft) }()
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := azuritePackage.ReadFile("azurite/" + name)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(draft, name), text, 0o600); err != nil {
			return "", err
		}
	}
	install := exec.Command("npm", "ci", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund")
	install.Dir = draft
	if out, err := install.CombinedOutput(); err != nil {
		return "", errors.New("npm ci: " + err.Error() + ": " + string(out))
	}
	if err := os.Rename(draft, dir); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return program, nil
}

// Azure is a running server of Azure's blob storage with the container "backups".
type Azure struct {
	// Secret is the data of a Secret that reaches it.
	Secret map[string][]byte
	// Address is where it listens.
	Address string

	*process
}

// StartAzure starts a server that speaks TLS and ends with the test.
func StartAzure(t *testing.T, c Certificate) *Azure {
	t.Helper()
	program, err := azurite()
	if err != nil {
		t.Fatalf("Azure's server: %v", err)
	}
	key := base64.StdEncoding.EncodeToString([]byte(Secret))
	a := &Azure{Address: FreeAddress(t), Secret: map[string][]byte{"account": []byte("tester"), "key": []byte(key + "\n"), "ca.crt": c.CA}}
	host, port, _ := net.SplitHostPort(a.Address)
	a.process = start(t, a.Address, append(os.Environ(), "AZURITE_ACCOUNTS=tester:"+key), "node", program, "--blobHost", host, "--blobPort", port,
		"--location", t.TempDir(), "--silent", "--disableTelemetry", "--skipApiVersionCheck", "--cert", c.CertFile, "--key", c.KeyFile)
	shared, err := azblob.NewSharedKeyCredential("tester", key)
	if err != nil {
		t.Fatal(err)
	}
	options := &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: c.transport(t)}}}
	client, err := container.NewClientWithSharedKeyCredential("https://"+a.Address+"/tester/backups", shared, options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return a
}

// URL is the object URL of a key in the container.
func (a *Azure) URL(key string) string { return "azblob://backups/" + key + "?domain=" + a.Address }
