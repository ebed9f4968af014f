package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// refusedFor is how long none of the passwords is tried again when all were refused: etcd spends a
// tenth of a second of a processor on each.
const refusedFor = 10 * time.Second

// login has a connection come in as user root by a password, where no certificate lets it in. A
// password is shown only when the member asks who is there, so that none is sent, nor read, while
// authentication is off.
type login struct {
	passwords func(context.Context) ([]Password, error)
	// others are connections to the other members: a learner takes tokens, and gives none.
	others func() []*Conn

	mu    sync.Mutex
	token string
	// refused is why no password was right, at that time.
	refused error
	at      time.Time
}

// interceptors are what makes a connection of it.
func (l *login) interceptors() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(l.ask), grpc.WithChainStreamInterceptor(l.stream)}
}

// ask makes one request, and once more with a token where the member wants one.
func (l *login) ask(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if method == pb.Auth_Authenticate_FullMethodName {
		return call(ctx, method, request, reply, conn, options...) // for who is named in it
	}
	token := l.held()
	err := call(bearing(ctx, token), method, request, reply, conn, options...)
	if !wantsToken(err) {
		return err
	}
	token, failed := l.renew(ctx, conn, token)
	switch {
	case failed != nil:
		return failed
	case token == "":
		return err
	}
	return call(bearing(ctx, token), method, request, reply, conn, options...)
}

// stream begins a stream with a token that is new: it cannot be begun again. Where there is no password
// to show, the member says itself whether it wants one.
func (l *login) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, begin grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	token, err := l.renew(ctx, conn, l.held())
	if err != nil && !errors.Is(err, errNone) {
		return nil, err
	}
	s, begun := begin(bearing(ctx, token), desc, conn, method, options...)
	if begun != nil || err == nil {
		return s, begun
	}
	return nameless{s}, nil
}

// nameless is a stream that was begun without a token.
type nameless struct{ grpc.ClientStream }

// RecvMsg implements grpc.ClientStream.
func (s nameless) RecvMsg(answer any) error {
	err := s.ClientStream.RecvMsg(answer)
	if wantsToken(err) {
		return errNone
	}
	return err
}

func (l *login) held() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.token
}

// unused reports whether no password was asked for.
func (l *login) unused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.token == "" && l.refused == nil
}

// bearing adds a token to what is sent.
func bearing(ctx context.Context, token string) context.Context {
	if token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, token)
}

// wantsToken reports whether a member asks who is there. Before 3.5, what answers for maintenance says so
// in the words of the store of users.
func wantsToken(err error) bool {
	if err == nil {
		return false
	}
	for _, known := range []error{rpctypes.ErrUserEmpty, rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthOldRevision} {
		if errors.Is(rpctypes.Error(err), known) {
			return true
		}
	}
	return slices.Contains([]string{"auth: user name is empty", "auth: invalid auth token", "auth: revision in header is old"}, status.Convert(err).Message())
}

// renew gets a token in place of one that is no longer taken, by the first password that is right;
// "" while authentication is off. Where another request has got one meanwhile, that is it.
func (l *login) renew(ctx context.Context, conn *grpc.ClientConn, old string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token != old {
		return l.token, nil
	}
	if l.refused != nil && time.Since(l.at) < refusedFor {
		return "", l.refused
	}
	token, err := l.authenticate(ctx, conn)
	if err != nil && strings.Contains(err.Error(), "rpc not supported for learner") && l.others != nil {
		for _, o := range l.others() {
			if token, err = l.authenticate(ctx, o.etcd.ActiveConnection()); err == nil {
				break
			}
		}
	}
	switch {
	case err == nil:
		l.token, l.refused = token, nil
	case errors.Is(err, ErrNoPassword):
		l.refused, l.at = err, time.Now()
	}
	return token, err
}

// authenticate gets a token through a connection, "" while authentication is off.
func (l *login) authenticate(ctx context.Context, conn *grpc.ClientConn) (string, error) {
	passwords, err := l.passwords(ctx)
	if err != nil {
		return "", err
	}
	auth := pb.NewAuthClient(conn)
	for _, p := range passwords {
		answer, err := auth.Authenticate(ctx, &pb.AuthenticateRequest{Name: rootUser, Password: string(p)})
		switch err = rpctypes.Error(err); {
		case err == nil:
			return answer.Token, nil
		case errors.Is(err, rpctypes.ErrAuthNotEnabled):
			return "", nil
		case !errors.Is(err, rpctypes.ErrAuthFailed) && !hasNone(err):
			return "", plainError(err)
		}
	}
	if len(passwords) == 0 {
		return "", errNone
	}
	return "", fmt.Errorf("%w, of %d", ErrNoPassword, len(passwords))
}

// ErrNoPassword says that quorate has no password that lets it in as user root.
var ErrNoPassword = errors.New("quorate has no password with which etcd lets it in as user root")

// errNone is ErrNoPassword where there is none at all.
var errNone = fmt.Errorf("%w", ErrNoPassword)
