package backup

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
)

// minioModule is MinIO, by a version of its main branch: its releases are no versions
// of a Go module.
const minioModule = "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c"

// startMinIO starts a server with the bucket "backups" that ends with the test, and
// puts its credentials into the environment. It takes minutes to build, so it is left
// out unless QUORATE_MINIO is set.
func startMinIO(t *testing.T) *backuptest.S3 {
	t.Helper()
	if os.Getenv("QUORATE_MINIO") == "" {
		t.Skip("MinIO takes minutes to build: make minio")
	}
	binary, err := installed(minioModule)
	if err != nil {
		t.Fatalf("MinIO: %v", err)
	}
	backuptest.SetCredentials(t, "tester", backuptest.Secret)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	dir, address := t.TempDir(), backuptest.FreeAddress(t)
	env := []string{"MINIO_ROOT_USER=tester", "MINIO_ROOT_PASSWORD=" + backuptest.Secret, "HOME=" + t.TempDir(), "MINIO_BROWSER=off"}
	process := backuptest.Start(t, address, env, binary, "server", "--quiet", "--address", address, filepath.Join(dir, "data"))
	s := backuptest.NewS3(dir, address, process)
	client := s3.New(s3.Options{
		BaseEndpoint: aws.String("http://" + s.Address), Region: "us-east-1", UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "tester", SecretAccessKey: backuptest.Secret}, nil
		}),
	})
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("backups")}); err != nil {
		t.Fatalf("MinIO: make the bucket: %v", err)
	}
	return s
}

// installed returns the path of a program from a Go module, "path@version", that is built
// once and kept in the user's cache.
func installed(module string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(cache, "quorate", "bin")
	pkg, version, _ := strings.Cut(module, "@")
	path := filepath.Join(bin, filepath.Base(pkg))
	if out, err := exec.Command("go", "version", "-m", path).Output(); err == nil && bytes.Contains(out, []byte("\t"+version)) {
		return path, nil
	}
	build := exec.Command("go", "install", module)
	build.Env = append(os.Environ(), "GOBIN="+bin, "GOFLAGS=")
	build.Dir = os.TempDir()
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.New("go install " + module + ": " + string(out))
	}
	return path, nil
}
