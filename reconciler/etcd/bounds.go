package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/reconciler/markdown"
)

// A member is not trusted: whoever has taken one over, or its address, answers whatever they
// like. What it answers is bounded, in bytes and in number, and every text in it is data on
// one line.
const (
	// maxAnswer bounds one message in bytes.
	maxAnswer = 8 << 20
	// maxHeaders bounds the headers of an answer in bytes, among which errors travel.
	maxHeaders = 64 << 10
	// maxVersion bounds the answer about the cluster version in bytes.
	maxVersion = 4 << 10
	// maxMetrics bounds what is read of a member's metrics in bytes.
	maxMetrics = 16 << 20
	// snapshotMargin is by how much a snapshot may be larger than twice the database: it grows
	// between the question for its size and its end.
	snapshotMargin = 512 << 20
	// maxMembers bounds a member list; etcd advises seven at most.
	maxMembers = 100
	// maxAlarms bounds the list of alarms, of which etcd has two sorts.
	maxAlarms = 2 * maxMembers
	// maxErrors bounds the errors that a member reports about itself.
	maxErrors = 20
)

// ErrTooLarge says that an answer was given up because it is larger than any of etcd's.
var ErrTooLarge = errors.New("its answer is larger than etcd's are: find out what listens at the address of this member, and replace the member")

// bound gives up a message that is too large, and one of which clients read a header that
// is not there.
func bound() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)), grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithChainUnaryInterceptor(withHeader),
	}
}

// withHeader refuses an answer that lacks the header which tells whose it is.
func withHeader(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if err := call(ctx, method, request, reply, conn, options...); err != nil {
		return err
	}
	header := &pb.ResponseHeader{}
	switch r := reply.(type) {
	case *pb.StatusResponse:
		header = r.Header
	case *pb.RangeResponse:
		header = r.Header
	case *pb.MemberListResponse:
		header = r.Header
	}
	if header == nil {
		return status.Error(codes.Unknown, "its answer does not tell whose it is, as etcd's do: find out what listens at the address of this member")
	}
	return nil
}

// isTooLarge reports whether the client has given an answer up for its size.
func isTooLarge(s *status.Status) bool {
	return s.Code() == codes.ResourceExhausted && strings.Contains(s.Message(), "larger than max")
}

// word and sentence are texts of a member on one line.
func word(text string) string     { return markdown.Plain(text, markdown.ValueRunes) }
func sentence(text string) string { return markdown.Plain(text, markdown.MessageRunes) }

// checkStatus makes the texts of a status data.
func checkStatus(s *pb.StatusResponse) *pb.StatusResponse {
	s.Version, s.StorageVersion = word(s.Version), word(s.StorageVersion)
	if s.DowngradeInfo != nil {
		s.DowngradeInfo.TargetVersion = word(s.DowngradeInfo.TargetVersion)
	}
	s.Errors = s.Errors[:min(len(s.Errors), maxErrors)]
	for i, text := range s.Errors {
		s.Errors[i] = sentence(text)
	}
	return s
}

// checkMembers makes the texts of a member list data, and refuses one that no cluster has.
func checkMembers(members []*pb.Member) error {
	if len(members) > maxMembers {
		return fmt.Errorf("it lists %d members, and no cluster has more than %d: find out what listens at its address", len(members), maxMembers)
	}
	for _, m := range members {
		m.Name = word(m.Name)
	}
	return nil
}

// bounded is a reader that fails behind so many bytes.
type bounded struct {
	io.ReadCloser
	left int64
	// problem is what it fails with.
	problem error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.problem
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one more byte tells that there are too many
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n - 1, b.problem
	}
	return n, err
}
