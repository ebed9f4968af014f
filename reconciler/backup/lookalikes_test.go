package backup

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
)

// lookalikes are what stores that speak only a part of S3 make of the rest, for a proxy
// before one that speaks all of it. Each is what some real store answers.
func lookalikes(t *testing.T) map[string]backuptest.Fault {
	const header = "A header you provided implies functionality that is not implemented"
	return map[string]backuptest.Fault{
		// Backblaze B2, Alibaba OSS, OpenStack Swift.
		"conditions not implemented": when(conditional, http.StatusNotImplemented, "NotImplemented", header),
		"conditions invalid":         when(conditional, http.StatusBadRequest, "InvalidArgument", "Unsupported header 'if-none-match' received for this API call."),
		"conditions no request":      when(conditional, http.StatusBadRequest, "InvalidRequest", "Invalid Request"),
		// Ceph and others, which at first looked at them in PutObject alone.
		"conditions ignored": ignoring(t, "If-None-Match", "If-Match"),
		// Ceph, IBM, NetApp, MinIO before 2024; Google's S3 API; Storj.
		"trailers mismatch":        when(trailing, http.StatusBadRequest, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed."),
		"trailers not signed":      when(trailing, http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided."),
		"trailers not implemented": when(trailing, http.StatusNotImplemented, "NotImplemented", header),
		// Backblaze B2.
		"checksums unsupported": when(checksummed, http.StatusBadRequest, "InvalidArgument", "Unsupported header 'x-amz-checksum-crc32' received for this API call."),
		// Small gateways.
		"uploads not listed":  when(listsUploads, http.StatusNotImplemented, "NotImplemented", header),
		"uploads not aborted": when(abortsUpload, http.StatusNotImplemented, "NotImplemented", header),
	}
}

// when answers some requests with an error as S3 writes it.
func when(is func(*http.Request) bool, status int, code, message string) backuptest.Fault {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !is(r) {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
		return true
	}
}

func conditional(r *http.Request) bool {
	return writes(r) && (r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Match") != "")
}

func writes(r *http.Request) bool { return r.Method == http.MethodPut || r.Method == http.MethodPost }

func trailing(r *http.Request) bool {
	return r.Header.Get("X-Amz-Trailer") != "" || strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked") ||
		strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-")
}

func checksummed(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Amz-Checksum-") || name == "X-Amz-Sdk-Checksum-Algorithm" {
			return true
		}
	}
	return false
}

func listsUploads(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Query().Has("uploads")
}

func abortsUpload(r *http.Request) bool {
	return r.Method == http.MethodDelete && r.URL.Query().Has("uploadId")
}

// ignoring is a store that takes no notice of some headers of what is written. They are
// signed, so the request is signed again without them.
func ignoring(t *testing.T, headers ...string) backuptest.Fault {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if !writes(r) {
			return false
		}
		for _, name := range headers {
			r.Header.Del(name)
		}
		r.Header.Del("Authorization")
		keys := aws.Credentials{AccessKeyID: "tester", SecretAccessKey: backuptest.Secret}
		r.URL.Host, r.URL.Scheme = r.Host, "https"
		if err := v4.NewSigner().SignHTTP(r.Context(), keys, r, r.Header.Get("X-Amz-Content-Sha256"), "s3", "us-east-1", time.Now(),
			func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }); err != nil {
			t.Errorf("sign again: %v", err)
		}
		return false
	}
}
