package umg

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"regexp"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	v1 "umg.example/clients/go/gen/umg/v1"
)

// Error is the error of a failed call, with the code and the message of gRPC's status.
type Error struct {
	*status.Status
	Reason     v1.ErrorReason    // UNSPECIFIED for one that is newer than this package
	Field      string            // path of the field that the error is about, "" for none
	Metadata   map[string]string // its keys depend on the reason, as the schema documents
	RequestID  string            // id of the call in the log of the gateway
	RetryAfter time.Duration     // time to wait before another attempt, 0 where the gateway states none
	Retryable  bool              // whether the same call can succeed later
	again      bool              // whether it is safe, too, that this package repeats it
}

// Error returns the reason, the message and the request id.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (request id %s)", strings.TrimPrefix(e.Reason.String(), "ERROR_REASON_"), e.Message(), e.RequestID)
}

// GRPCStatus returns the status, so that status.Code(err) is its code.
func (e *Error) GRPCStatus() *status.Status { return e.Status }

const maxWait = 30 * time.Second // a call that would have to wait longer for its next attempt fails

// bareReasons has the reasons of statuses that gRPC or a proxy has made.
var bareReasons = map[codes.Code]string{codes.Unavailable: "UNAVAILABLE", codes.DeadlineExceeded: "DEADLINE_EXCEEDED",
	codes.ResourceExhausted: "BODY_TOO_LARGE", codes.Canceled: "CANCELLED", codes.Unimplemented: "NOT_IMPLEMENTED"}

var (
	reads   = regexp.MustCompile(`/(Get|List|Count|Watch|Download)\w+$`) // methods that change nothing
	notDone = regexp.MustCompile(`^(UNAVAILABLE|UPSTREAM_UNREACHABLE|(UPSTREAM_)?RATE_LIMITED)$`)
	passing = regexp.MustCompile(`^((UPSTREAM_)?RATE_LIMITED|UPSTREAM_TIMEOUT)$`)
)

// call is one call of a client.
type call struct {
	method    string
	id        string
	retries   bool
	connected bool // whether it reached the gateway
	begun     bool // whether a message of its stream has arrived
}

// failed returns the *Error of a call. It returns nil, and the end of a stream, as they are.
func (c *call) failed(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	info, e := &errdetails.ErrorInfo{}, &Error{Status: status.Convert(err), RequestID: c.id}
	for _, detail := range e.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			info = detail
		case *errdetails.RetryInfo:
			e.RetryAfter = detail.RetryDelay.AsDuration()
		}
	}
	isSafe := notDone.MatchString(info.Reason)
	if info.Domain != "umg" {
		info, isSafe = &errdetails.ErrorInfo{Reason: bareReasons[e.Code()]}, !c.connected
		if e.Code() == codes.DeadlineExceeded {
			e.Status = status.New(e.Code(), "the call's own deadline passed before the answer; give it more time")
		}
	}
	e.Reason = v1.ErrorReason(v1.ErrorReason_value["ERROR_REASON_"+info.Reason])
	e.Metadata, e.Field = info.Metadata, info.Metadata["field"]
	e.Retryable = e.Code() == codes.Unavailable || passing.MatchString(info.Reason)
	e.again = c.retries && !c.begun && e.Retryable && (isSafe || e.Code() == codes.Unavailable && reads.MatchString(c.method))
	return e
}

// attempts repeats a call at most twice where that is safe: a read, and a call of which nothing was done.
func attempts(ctx context.Context, try func() error) error {
	for count := 0; ; count++ {
		err := try()
		e, isError := err.(*Error)
		if !isError || !e.again || count == 2 {
			return err
		}
		wait := e.RetryAfter
		if wait == 0 {
			wait = time.Duration((0.1 + 0.2*mathrand.Float64()) * float64(time.Second<<count))
		}
		if deadline, has := ctx.Deadline(); wait > maxWait || has && time.Until(deadline) <= wait {
			return err
		}
		pause, cancel := context.WithTimeout(ctx, wait)
		<-pause.Done()
		cancel()
	}
}

// calls adds to each call of a client what all have in common.
type calls struct {
	key       string
	noRetries bool
}

// begin returns a context that sends the key and a request id, unless the caller's metadata has others.
func (c *calls) begin(ctx context.Context, method string) (context.Context, *call) {
	given, _ := metadata.FromOutgoingContext(ctx)
	sent := metadata.Join(metadata.Pairs(), given)
	if c.key != "" && sent["authorization"] == nil {
		sent.Set("authorization", "Bearer "+c.key)
	}
	if sent["x-request-id"] == nil {
		sent.Set("x-request-id", rand.Text())
	}
	return metadata.NewOutgoingContext(ctx, sent), &call{method: method, id: sent["x-request-id"][0], retries: !c.noRetries}
}

func (c *calls) unary(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	ctx, call := c.begin(ctx, method)
	return attempts(ctx, func() error {
		var server peer.Peer
		err := invoke(ctx, method, request, answer, conn, append(options, grpc.Peer(&server))...)
		call.connected = server.Addr != nil
		return call.failed(err)
	})
}

func (c *calls) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	ctx, call := c.begin(ctx, method)
	opened, err := open(ctx, desc, conn, method, options...)
	call.connected = err == nil
	return &stream{opened, call}, call.failed(err)
}

// stream is a stream whose errors are *Error.
type stream struct {
	grpc.ClientStream
	*call
}

func (s *stream) RecvMsg(message any) error {
	err := s.failed(s.ClientStream.RecvMsg(message))
	s.begun = true
	return err
}
