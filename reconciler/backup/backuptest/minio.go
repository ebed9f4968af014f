package backuptest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// minioModule is MinIO, by a version of its main branch: its releases are no versions
// of a Go module.
const minioModule = "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c"

// StartMinIO starts a server with the bucket "backups" that ends with the test, and
// puts its credentials into the environment. It takes minutes to build, so it is left
// out unless QUORATE_MINIO is set.
func StartMinIO(t *testing.T) *S3 {
	t.Helper()
	if os.Getenv("QUORATE_MINIO") == "" {
		t.Skip("MinIO takes minutes to build: make minio")
	}
	binary, err := installed(minioModule)
	if err != nil {
		t.Fatalf("MinIO: %v", err)
	}
	SetCredentials(t, "tester", Secret)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	s := &S3{Dir: t.TempDir(), Address: FreeAddress(t), scheme: "http"}
	s.process = start(t, s.Address, []string{"MINIO_ROOT_USER=tester", "MINIO_ROOT_PASSWORD=" + Secret, "HOME=" + t.TempDir(), "MINIO_BROWSER=off"},
		binary, "server", "--quiet", "--address", s.Address, filepath.Join(s.Dir, "data"))
	client := s3.New(s3.Options{
		BaseEndpoint: aws.String("http://" + s.Address), Region: "us-east-1", UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "tester", SecretAccessKey: Secret}, nil
		}),
	})
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("backups")}); err != nil {
		t.Fatalf("MinIO: make the bucket: %v", err)
	}
	return s
}
