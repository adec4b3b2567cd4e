// Package umg calls a Unified Model Gateway: by the generated stubs of its services, with a key, a request id, retries and
// errors that have a reason (calls.go), and by short forms of common calls.
package umg

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"math"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	v1 "umg.example/clients/go/gen/umg/v1"
)

// Client has the generated stub of each service. A failed call returns an *Error.
type Client struct {
	*grpc.ClientConn
	Admin      v1.AdminServiceClient
	Embeddings v1.EmbeddingServiceClient
	Files      v1.FileServiceClient
	Generation v1.GenerationServiceClient
	Images     v1.ImageServiceClient
	Models     v1.ModelServiceClient
	Rerank     v1.RerankServiceClient
	Videos     v1.VideoServiceClient
}

// Options of a client. The zero value connects in plain text and repeats a failed call twice where that is safe.
type Options struct {
	TLS       *tls.Config       // &tls.Config{} trusts the authorities of this machine
	NoRetries bool              // returns the error of the first attempt
	Dial      []grpc.DialOption // further options, which override those of this package
}

// Connect returns a client of the gateway at HOST:PORT. An empty key sends none. The first call connects.
func Connect(address, key string, options Options) (*Client, error) {
	transport, calls := insecure.NewCredentials(), &calls{key, options.NoRetries}
	if options.TLS != nil {
		transport = credentials.NewTLS(options.TLS)
	}
	conn, err := grpc.NewClient(address, append([]grpc.DialOption{grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64 << 20)),
		grpc.WithUnaryInterceptor(calls.unary), grpc.WithStreamInterceptor(calls.stream)}, options.Dial...)...)
	if err != nil {
		return nil, err
	}
	return &Client{conn, v1.NewAdminServiceClient(conn), v1.NewEmbeddingServiceClient(conn), v1.NewFileServiceClient(conn),
		v1.NewGenerationServiceClient(conn), v1.NewImageServiceClient(conn), v1.NewModelServiceClient(conn),
		v1.NewRerankServiceClient(conn), v1.NewVideoServiceClient(conn)}, nil
}

// TextPart returns a part with this text.
func TextPart(text string) *v1.Part {
	return &v1.Part{Kind: &v1.Part_Text{Text: &v1.TextPart{Text: text}}}
}

// User returns a user's message with this text.
func User(text string) *v1.Message {
	return &v1.Message{Role: v1.Role_ROLE_USER, Parts: []*v1.Part{TextPart(text)}}
}

// Text returns the text of an answer's first candidate, "" without one.
func Text(answer *v1.GenerateResponse) (text string) {
	for _, part := range message(answer).GetParts() {
		text += part.GetText().GetText()
	}
	return text
}

func message(answer *v1.GenerateResponse) *v1.Message {
	if len(answer.GetCandidates()) == 0 {
		return nil
	}
	return answer.Candidates[0].Message
}

// Floats returns the numbers of a vector.
func Floats(embedding *v1.Embedding) []float32 {
	numbers := make([]float32, len(embedding.GetValues())/4)
	for i := range numbers {
		numbers[i] = math.Float32frombits(binary.LittleEndian.Uint32(embedding.Values[4*i:]))
	}
	return numbers
}

// All calls a method that streams, e.g. client.Videos.WatchVideoTask, and yields its messages, or its error as the last
// pair. Leaving the loop cancels the call. Until the first message, a failed call is repeated as a unary one is.
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

// Chat yields the answer of a model to one text, in pieces. The instructions are the system prompt.
func (c *Client) Chat(ctx context.Context, model, text string, instructions ...string) iter.Seq2[string, error] {
	request := &v1.StreamGenerateRequest{Request: &v1.GenerateRequest{Model: model, Messages: []*v1.Message{User(text)}}}
	for _, instruction := range instructions {
		request.Request.Instructions = append(request.Request.Instructions, TextPart(instruction))
	}
	return func(yield func(string, error) bool) {
		for answer, err := range All(ctx, c.Generation.StreamGenerate, request) {
			for _, event := range answer.GetEvents() {
				if delta := event.GetTextDelta(); delta != "" && !yield(delta, nil) {
					return
				}
			}
			if err != nil {
				yield("", err)
			}
		}
	}
}

// RunTools returns the first answer without tool calls. It runs the calls of the answers before it, by a function of name
// and JSON arguments, and appends them and their results to request.Messages. An error of the function is a result too.
func (c *Client) RunTools(ctx context.Context, request *v1.GenerateRequest, run func(name, arguments string) (string, error)) (*v1.GenerateResponse, error) {
	for {
		answer, err := c.Generation.Generate(ctx, request)
		results := &v1.Message{Role: v1.Role_ROLE_TOOL}
		for _, part := range message(answer).GetParts() {
			if call := part.GetToolCall(); call != nil {
				output, failure := run(call.Name, call.GetArgumentsJson())
				result := &v1.ToolResult{CallId: call.CallId, Name: call.Name, IsError: proto.Bool(failure != nil)}
				if failure != nil {
					output = failure.Error()
				}
				result.Parts = []*v1.Part{TextPart(output)}
				results.Parts = append(results.Parts, &v1.Part{Kind: &v1.Part_ToolResult{ToolResult: result}})
			}
		}
		if err != nil || len(results.Parts) == 0 {
			return answer, err
		}
		request.Messages = append(request.Messages, message(answer), results)
	}
}

// MakeVideo submits a video and yields every state of its task up to the final one, which may be a failure.
func (c *Client) MakeVideo(ctx context.Context, request *v1.CreateVideoTaskRequest) iter.Seq2[*v1.VideoTask, error] {
	return func(yield func(*v1.VideoTask, error) bool) {
		created, err := c.Videos.CreateVideoTask(ctx, request)
		if err != nil {
			yield(nil, err)
			return
		}
		id := created.GetTask().GetTaskId()
		for update, err := range All(ctx, c.Videos.WatchVideoTask, &v1.WatchVideoTaskRequest{TaskId: id}) {
			if !yield(update.GetTask(), err) {
				return
			}
		}
	}
}

// DownloadVideo writes the video of a finished task and returns its media type. It calls progress after each chunk, with
// the number of bytes so far and of all bytes, 0 where the gateway does not have it. Progress may be nil.
func (c *Client) DownloadVideo(ctx context.Context, taskID string, to io.Writer, progress func(received, total int64)) (string, error) {
	return download(All(ctx, c.Videos.DownloadVideo, &v1.DownloadVideoRequest{TaskId: taskID}), to, progress)
}

// DownloadImage writes an image, whose bytes are in its message or in a file of the gateway, as DownloadVideo does.
func (c *Client) DownloadImage(ctx context.Context, image *v1.Image, to io.Writer, progress func(received, total int64)) (string, error) {
	if size := int64(len(image.GetData())); size > 0 {
		_, err := to.Write(image.GetData())
		if progress != nil {
			progress(size, size)
		}
		return image.MimeType, err
	}
	_, token, isFile := strings.Cut(image.GetUrl(), "/files/")
	if !isFile {
		return "", errors.New("the image is at an address of its provider, not of the gateway: fetch it with an HTTP client")
	}
	return download(All(ctx, c.Files.DownloadFile, &v1.DownloadFileRequest{Token: token}), to, progress)
}

func download[Message interface {
	GetHead() *v1.ContentHead
	GetChunk() []byte
}](messages iter.Seq2[Message, error], to io.Writer, progress func(received, total int64)) (string, error) {
	head, received := &v1.ContentHead{}, 0
	for message, err := range messages {
		if message.GetHead() != nil {
			head = message.GetHead()
		} else if err == nil {
			received += len(message.GetChunk())
			if _, err = to.Write(message.GetChunk()); progress != nil {
				progress(int64(received), head.GetTotalBytes())
			}
		}
		if err != nil {
			return head.MimeType, err
		}
	}
	return head.MimeType, nil
}
