package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quorate/quorate/test/freeport"
)

const (
	// Bucket is the bucket that an S3Server has from the start.
	Bucket = "backups"

	s3Region       = "us-east-1"
	manifestEnding = ".manifest.json"
	// nobody is the user that the server runs as where this process is root: permissions
	// mean nothing to root, so its bucket could not be made unwritable.
	nobody = 65534
)

// S3Server is a real S3 server, versitygw, on a directory of this machine.
type S3Server struct {
	// AccessKey and SecretKey are the administrator's, made up at the start.
	AccessKey, SecretKey string

	binary, dir, address string
	process              *process
	log                  *os.File
}

// StartS3 starts a server at host, on a port that is free, with Bucket in it.
func (c *Cluster) StartS3(ctx context.Context) (*S3Server, error) {
	binary, err := c.versitygw(ctx)
	if err != nil {
		return nil, err
	}
	return StartS3Server(binary, c.Host)
}

// StartS3Server is StartS3 without a cluster: binary is versitygw's path.
func StartS3Server(binary, host string) (*S3Server, error) {
	dir, err := os.MkdirTemp("", "quorate-s3-")
	if err != nil {
		return nil, fmt.Errorf("directory of the S3 server: %w", err)
	}
	s := &S3Server{AccessKey: "lab-" + rand.Text()[:8], SecretKey: rand.Text(), dir: dir, binary: filepath.Join(dir, "versitygw")}
	if s.address, err = freeport.At(host); err == nil {
		err = s.prepare(binary)
	}
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("S3 server: %w", err)
	}
	return s, nil
}

// prepare lays out the directory, readable for the server's user. The binary is
// copied there because the user may not enter the directory it is in.
func (s *S3Server) prepare(binary string) error {
	if err := copyFile(binary, s.binary, 0o755); err != nil {
		return err
	}
	for _, dir := range []string{s.data(), s.bucket(), filepath.Join(s.dir, "metadata")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := s.give(dir, nobody); err != nil {
			return err
		}
	}
	log, err := os.Create(s.LogPath())
	s.log = log
	return errors.Join(err, os.Chmod(s.dir, 0o755))
}

func (s *S3Server) data() string   { return filepath.Join(s.dir, "data") }
func (s *S3Server) bucket() string { return filepath.Join(s.data(), Bucket) }

// LogPath is the path of the server's log.
func (s *S3Server) LogPath() string { return filepath.Join(s.dir, "versitygw.log") }

// give changes the owner where that is possible and needed.
func (s *S3Server) give(path string, owner int) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(path, owner, owner)
}

// Start serves again after Stop, at the same address and with the same data.
func (s *S3Server) Start() error {
	if s.process != nil && s.process.running() {
		return nil
	}
	cmd := exec.Command(s.binary, "--port", s.address, "--region", s3Region, "--quiet",
		"posix", "--sidecar", filepath.Join(s.dir, "metadata"), s.data())
	cmd.Env = []string{"ROOT_ACCESS_KEY=" + s.AccessKey, "ROOT_SECRET_KEY=" + s.SecretKey}
	cmd.Dir = s.data()
	p, err := startProcess(cmd, s.log, asNobody)
	if err != nil {
		return err
	}
	s.process = p
	return s.awaitListening()
}

// asNobody drops root's rights.
func asNobody(attributes *syscall.SysProcAttr) {
	if os.Geteuid() == 0 {
		attributes.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
}

func (s *S3Server) awaitListening() error {
	return Poll(context.Background(), 10*time.Second, func(context.Context) (bool, error) {
		if !s.process.running() {
			return false, fmt.Errorf("it ended at once, see %s: %w", s.LogPath(), s.process.err)
		}
		conn, err := net.DialTimeout("tcp", s.address, time.Second)
		if err != nil {
			return false, nil // it does not listen yet
		}
		return true, conn.Close()
	})
}

// Stop makes the server unreachable; its data stays.
func (s *S3Server) Stop() {
	if s.process != nil && s.process.running() {
		s.process.kill()
	}
}

// Close stops the server and removes its data.
func (s *S3Server) Close() {
	s.Stop()
	if s.log != nil {
		_ = s.log.Close()
	}
	_ = os.RemoveAll(s.dir)
}

// SetWritable lets the server store objects in Bucket, or refuse to: the
// server's own disk turns it down.
func (s *S3Server) SetWritable(writable bool) error {
	owner, mode := nobody, fs.FileMode(0o755)
	if !writable {
		owner, mode = 0, 0o555
	}
	if err := s.give(s.bucket(), owner); err != nil {
		return err
	}
	return os.Chmod(s.bucket(), mode)
}

// Spoil flips a bit in the middle of a stored object, as a disk does.
func (s *S3Server) Spoil(key string) error {
	f, err := os.OpenFile(filepath.Join(s.bucket(), filepath.FromSlash(key)), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("spoil %s: %w", key, err)
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	one, middle := make([]byte, 1), info.Size()/2
	_, err = f.ReadAt(one, middle)
	if one[0] ^= 1; err == nil {
		_, err = f.WriteAt(one, middle)
	}
	return errors.Join(err, f.Close())
}

// Endpoint is the server's URL.
func (s *S3Server) Endpoint() string { return "http://" + s.address }

// URLTemplate is a --backup-url for Bucket.
func (s *S3Server) URLTemplate() string {
	return "s3://" + Bucket + "/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db?" + s.query()
}

// ObjectURL is the URL of the object with that key in Bucket.
func (s *S3Server) ObjectURL(key string) string {
	return "s3://" + Bucket + "/" + key + "?" + s.query()
}

// ObjectPath is where the object with that key is on this machine.
func (s *S3Server) ObjectPath(key string) string {
	return filepath.Join(s.bucket(), filepath.FromSlash(key))
}

func (s *S3Server) query() string {
	return url.Values{"endpoint": {s.Endpoint()}, "region": {s3Region}, "use_path_style": {"true"}}.Encode()
}

// Credentials are the environment in which the AWS SDK finds the keys.
func (s *S3Server) Credentials() map[string]string {
	return map[string]string{
		"AWS_ACCESS_KEY_ID": s.AccessKey, "AWS_SECRET_ACCESS_KEY": s.SecretKey,
		// The client must not ask the metadata service of EC2.
		"AWS_EC2_METADATA_DISABLED": "true",
	}
}

// UseCredentials puts the keys into this process's own environment, for
// backup.Verify.
func (s *S3Server) UseCredentials() error {
	for name, value := range s.Credentials() {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// Backups are the keys of the snapshots in Bucket that have a manifest, sorted.
// They are read from the server's disk.
func (s *S3Server) Backups() ([]string, error) {
	keys, err := s.Objects()
	if err != nil {
		return nil, err
	}
	var backups []string
	for _, key := range keys {
		if snapshot, ok := strings.CutSuffix(key, manifestEnding); ok {
			backups = append(backups, snapshot)
		}
	}
	return backups, nil
}

// Objects are all keys in Bucket, sorted.
func (s *S3Server) Objects() ([]string, error) {
	var keys []string
	err := fs.WalkDir(os.DirFS(s.bucket()), ".", func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && strings.HasPrefix(entry.Name(), ".sgwtmp") {
			return fs.SkipDir // uploads in progress
		}
		if err == nil && !entry.IsDir() {
			keys = append(keys, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the bucket: %w", err)
	}
	slices.Sort(keys)
	return keys, nil
}

// versitygw returns the path of the S3 server's binary, which the sandbox's tool builds when it is missing.
func (c *Cluster) versitygw(ctx context.Context) (string, error) {
	sandbox := c.Sandbox
	if sandbox == nil {
		sandbox = FindSandbox()
	}
	if sandbox == nil {
		return "", errors.New("needs versitygw, which is not built: `make servers` builds it")
	}
	return sandbox.Build(ctx, "versitygw")
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
