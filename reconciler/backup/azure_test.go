package backup

import (
	"encoding/base64"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/test/needs"
)

// azureServer is a running server of Azure's blob storage with the container "backups".
type azureServer struct {
	// secret is the data of a Secret that reaches it.
	secret map[string][]byte
	// address is where it listens.
	address string

	*backuptest.Process
}

// startAzure starts a server that speaks TLS and ends with the test.
func startAzure(t *testing.T, c backuptest.Certificate) *azureServer {
	t.Helper()
	node, program := needs.Program(t, "node"), needs.Server(t, "azurite")
	key := base64.StdEncoding.EncodeToString([]byte(backuptest.Secret))
	a := &azureServer{address: backuptest.FreeAddress(t), secret: map[string][]byte{"account": []byte("tester"), "key": []byte(key + "\n"), "ca.crt": c.CA}}
	host, port, _ := net.SplitHostPort(a.address)
	a.Process = backuptest.Start(t, a.address, append(os.Environ(), "AZURITE_ACCOUNTS=tester:"+key), node, program, "--blobHost", host, "--blobPort", port,
		"--location", t.TempDir(), "--silent", "--disableTelemetry", "--skipApiVersionCheck", "--cert", c.CertFile, "--key", c.KeyFile)
	shared, err := azblob.NewSharedKeyCredential("tester", key)
	if err != nil {
		t.Fatal(err)
	}
	options := &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: c.Transport(t)}}}
	client, err := container.NewClientWithSharedKeyCredential("https://"+a.address+"/tester/backups", shared, options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return a
}

// url is the object URL of a key in the container.
func (a *azureServer) url(key string) string {
	return "azblob://backups/" + key + "?domain=" + a.address
}
