// Package umg calls a Unified Model Gateway by the generated stubs of its services, with a key, a request id, retries
// and errors that have a reason. Its functions are short forms of common calls.
package umg

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	v1 "umg.example/clients/go/gen/umg/v1"
)

// Client is a connection for the generated stubs, e.g. v1.NewModelServiceClient(client). A failed call returns an *Error.
type Client struct {
	*grpc.ClientConn
	NoRetries bool // returns the error of the first attempt, also where it is safe to repeat the call
	key       string
}

// Connect returns a client of the gateway at HOST:PORT, or with TLS at https://HOST:PORT. An empty key sends none. The
// first call connects. Options override those of this package, e.g. grpc.WithTransportCredentials.
func Connect(address, key string, options ...grpc.DialOption) (*Client, error) {
	target, transport := strings.TrimPrefix(address, "https://"), insecure.NewCredentials()
	if target != address {
		transport = credentials.NewTLS(nil)
	}
	conn, err := grpc.NewClient(target, append([]grpc.DialOption{grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64 << 20))}, options...)...)
	return &Client{ClientConn: conn, key: key}, err
}

// User returns a user's message with this text.
func User(text string) *v1.Message {
	part := &v1.Part{Kind: &v1.Part_Text{Text: &v1.TextPart{Text: text}}}
	return &v1.Message{Role: v1.Role_ROLE_USER, Parts: []*v1.Part{part}}
}

// Text returns the text of a response's first candidate, "" without one.
func Text(answer *v1.GenerateResponse) (text string) {
	for _, part := range message(answer).GetParts() {
		text += part.GetText().GetText()
	}
	return text
}

func message(answer *v1.GenerateResponse) *v1.Message {
	for _, candidate := range answer.GetCandidates() {
		return candidate.GetMessage()
	}
	return nil
}

// Floats returns the numbers of a vector.
func Floats(embedding *v1.Embedding) []float32 {
	numbers := make([]float32, len(embedding.GetValues())/4)
	_, _ = binary.Decode(embedding.GetValues(), binary.LittleEndian, numbers)
	return numbers
}

// RunTools returns the first answer without tool calls, or the twentieth. It runs the calls of the responses before it, and
// appends them and their results to request.Messages. The error of a tool is a result too.
func (c *Client) RunTools(ctx context.Context, request *v1.GenerateRequest, run func(*v1.ToolCall) (string, error)) (*v1.GenerateResponse, error) {
	for count := 1; ; count++ {
		answer, err := v1.NewGenerationServiceClient(c).Generate(ctx, request)
		results := &v1.Message{Role: v1.Role_ROLE_TOOL}
		for _, part := range message(answer).GetParts() {
			if call := part.GetToolCall(); call != nil {
				output, failure := run(call)
				isError := failure != nil
				if isError {
					output = failure.Error()
				}
				results.Parts = append(results.Parts, &v1.Part{Kind: &v1.Part_ToolResult{ToolResult: &v1.ToolResult{
					CallId: call.CallId, Name: call.Name, Parts: User(output).Parts, IsError: &isError}}})
			}
		}
		if err != nil || len(results.Parts) == 0 || count == 20 {
			return answer, err
		}
		request.Messages = append(request.Messages, message(answer), results)
	}
}

// Download writes the content that a stub's DownloadVideo or DownloadFile streams to All, and returns its media type. It
// calls progress after each chunk, with the number of bytes so far and of all bytes, 0 where the gateway does not have it.
func Download[Message interface {
	GetHead() *v1.ContentHead
	GetChunk() []byte
}](messages iter.Seq2[Message, error], to io.Writer, progress func(received, total int64)) (string, error) {
	head, received := &v1.ContentHead{}, int64(0)
	for message, err := range messages {
		head = cmp.Or(message.GetHead(), head)
		if chunk := message.GetChunk(); len(chunk) > 0 {
			_, err = to.Write(chunk)
			received += int64(len(chunk))
			progress(received, head.GetTotalBytes())
		}
		if err != nil {
			return head.MimeType, err
		}
	}
	return head.MimeType, nil
}

// All yields the messages of a stub's method that streams, or its error as the last pair. Leaving the loop cancels it.
func All[Request, Answer any](ctx context.Context, method func(context.Context, *Request, ...grpc.CallOption) (
	grpc.ServerStreamingClient[Answer], error), request *Request) iter.Seq2[*Answer, error] {
	return func(yield func(*Answer, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		err := attempts(ctx, func() error {
			stream, err := method(ctx, request)
			for err == nil {
				var answer *Answer
				if answer, err = stream.Recv(); err == nil && !yield(answer, nil) {
					return io.EOF
				}
			}
			return err
		})
		if err != io.EOF {
			yield(nil, err)
		}
	}
}

// Invoke makes the unary calls of the stubs.
func (c *Client) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	return attempts(ctx, func() error {
		call, err := c.NewStream(ctx, &grpc.StreamDesc{}, method, options...)
		if err == nil {
			err = call.SendMsg(request)
		}
		if err == nil {
			err = call.RecvMsg(answer)
		}
		return err
	})
}

// NewStream begins a call of the stubs, with the key and a request id unless the caller's metadata has others.
func (c *Client) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	given, _ := metadata.FromOutgoingContext(ctx)
	sent := metadata.Pairs("authorization", "Bearer "+c.key, "x-request-id", fmt.Sprintf("%x%x", rand.Uint64(), rand.Uint64()))
	maps.Copy(sent, given)
	stream, err := c.ClientConn.NewStream(metadata.NewOutgoingContext(ctx, sent), desc, method, options...)
	call := &call{stream, method, sent["x-request-id"][0], !c.NoRetries}
	return call, call.failed(err, err == nil)
}

type call struct {
	grpc.ClientStream
	method, id string
	mayRepeat  bool
}

func (c *call) RecvMsg(answer any) error {
	err := c.failed(c.ClientStream.RecvMsg(answer), true)
	c.mayRepeat = false // half a response cannot be taken back
	return err
}

// attempts makes a call, and repeats it at most twice where that is safe.
func attempts(ctx context.Context, try func() error) error {
	for count := 0; ; count++ {
		err := try()
		e, isError := err.(*Error)
		if !isError || !e.isSafe || count == 2 {
			return err
		}
		wait := cmp.Or(e.RetryAfter, time.Duration((0.1+0.2*rand.Float64())*float64(time.Second<<count)))
		if deadline, has := ctx.Deadline(); wait > 30*time.Second || has && time.Until(deadline) <= wait {
			return err
		}
		pause, cancel := context.WithTimeout(ctx, wait)
		<-pause.Done()
		cancel()
	}
}

// Error is the error of a failed call, with the code and the message of gRPC's status.
type Error struct {
	*status.Status
	Reason     v1.ErrorReason    // UNSPECIFIED for one that is newer than this package
	Field      string            // path of the field that the error is about, "" for none
	Metadata   map[string]string // its keys depend on the reason, as the schema documents
	RequestID  string            // id of the call in the log of the gateway
	RetryAfter time.Duration     // time to wait before another attempt, 0 where the gateway states none
	Retryable  bool              // whether the same call can succeed later
	isSafe     bool              // whether it is safe, too, that this package repeats it
}

func (e *Error) Error() string {
	return fmt.Sprintf("%v: %s (request id %s)", e.Reason, e.Message(), e.RequestID)
}
func (e *Error) GRPCStatus() *status.Status { return e.Status } // for status.Code

var (
	reads   = regexp.MustCompile(`/(Get|List|Count|Watch|Download)\w+$`) // methods that change nothing
	refused = regexp.MustCompile(`^(UNAVAILABLE|UPSTREAM_UNREACHABLE|.*RATE_LIMITED)$`)
	passing = regexp.MustCompile(`^(UPSTREAM_TIMEOUT|.*RATE_LIMITED)$`)
	// reasons of statuses that gRPC or a proxy has made
	bareReasons = map[codes.Code]string{codes.Unavailable: "UNAVAILABLE", codes.DeadlineExceeded: "DEADLINE_EXCEEDED",
		codes.ResourceExhausted: "BODY_TOO_LARGE", codes.Canceled: "CANCELLED", codes.Unimplemented: "NOT_IMPLEMENTED"}
)

// failed returns the *Error of a call that reached the gateway, or not. The end of a stream is no error.
func (c *call) failed(err error, reached bool) error {
	if err == nil || err == io.EOF {
		return err
	}
	info, e := &errdetails.ErrorInfo{}, &Error{Status: status.Convert(err), RequestID: c.id}
	for _, detail := range e.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			info = detail
		case *errdetails.RetryInfo:
			e.RetryAfter = detail.GetRetryDelay().AsDuration()
		}
	}
	if info.Domain != "umg" {
		info = &errdetails.ErrorInfo{Reason: bareReasons[e.Code()]}
		if e.Code() == codes.DeadlineExceeded {
			e.Status = status.New(e.Code(), "the call's own deadline passed before the response; give it more time")
		}
	}
	e.Reason = v1.ErrorReason(v1.ErrorReason_value["ERROR_REASON_"+info.Reason])
	e.Metadata, e.Field = info.Metadata, info.Metadata["field"]
	e.Retryable = e.Code() == codes.Unavailable || passing.MatchString(info.Reason)
	isRefused := !reached || info.Domain != "" && refused.MatchString(info.Reason)
	e.isSafe = c.mayRepeat && e.Retryable && (isRefused || e.Code() == codes.Unavailable && reads.MatchString(c.method))
	return e
}
