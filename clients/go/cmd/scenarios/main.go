// Command scenarios runs the scenarios of clients/scenarios.json and prints the results of each as a line of JSON.
//
// Environment: UMG_ADDRESS (HOST:PORT of gRPC), UMG_API_KEY, UMG_ADMIN_KEY, UMG_SCENARIOS (path of the file), UMG_ONLY
// (names of scenarios, separated by commas) for some of them.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	v1 "umg.example/clients/go/gen/umg/v1"
	"umg.example/clients/go/umg"
)

type object = map[string]any

type scenario struct {
	Name  string
	Steps []struct {
		Call, Save string
		Args       object
	}
}

// arguments of a step, after references to former steps are replaced.
type arguments struct {
	Method            string
	Request           json.RawMessage
	Model, Text       string
	Instructions      string
	Image             json.RawMessage
	TaskID            string            `json:"task_id"`
	DeadlineMs        int               `json:"deadline_ms"`
	CancelAfterEvents int               `json:"cancel_after_events"`
	LargeTextBytes    int               `json:"large_text_bytes"`
	Key               *string           `json:"key"`
	Retries           *int              `json:"retries"`
	Metadata          map[string]string `json:"metadata"`
}

var calls = map[string]func(context.Context, *umg.Client, arguments) (object, error){
	"unary": unary, "stream": stream, "chat": chat, "tool_loop": toolLoop, "floats": floats, "download": download, "watch": watch,
}

func main() {
	var file struct{ Scenarios []scenario }
	text, err := os.ReadFile(os.Getenv("UMG_SCENARIOS"))
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	only := strings.Split(os.Getenv("UMG_ONLY"), ",")
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for _, scenario := range file.Scenarios {
		if err == nil && (only[0] == "" || slices.Contains(only, scenario.Name)) {
			err = output.Encode(object{"name": scenario.Name, "results": run(scenario)})
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(scenario scenario) (results []object) {
	saved := object{}
	for _, step := range scenario.Steps {
		result := runStep(step.Call, replaced(step.Args, saved))
		results = append(results, result)
		text, _ := json.Marshal(result) // the results have messages in JSON, of which references name members
		var plain object
		_ = json.Unmarshal(text, &plain)
		saved[step.Save] = plain
	}
	return results
}

func runStep(call string, given any) object {
	var args arguments
	text, err := json.Marshal(given)
	if err == nil {
		err = json.Unmarshal(text, &args)
	}
	if err != nil {
		return object{"failure": err.Error()}
	}
	client, err := client(args)
	if err != nil {
		return object{"failure": err.Error()}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if args.DeadlineMs > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(args.DeadlineMs)*time.Millisecond)
		defer cancel()
	}
	for name, value := range args.Metadata {
		ctx = metadata.AppendToOutgoingContext(ctx, name, value)
	}
	result, err := calls[call](ctx, client, args)
	var failed *umg.Error
	if err != nil && result == nil {
		result = object{}
	}
	if errors.As(err, &failed) {
		result["error"] = described(failed)
	} else if err != nil {
		result["failure"] = err.Error() // a mistake in the file or in the client
	}
	return result
}

var clients = map[string]*umg.Client{}

func client(args arguments) (*umg.Client, error) {
	key, noRetries := os.Getenv("UMG_API_KEY"), args.Retries != nil && *args.Retries == 0
	if args.Key != nil {
		key = *args.Key
	}
	if key == "admin" {
		key = os.Getenv("UMG_ADMIN_KEY")
	}
	id := fmt.Sprint(key, noRetries)
	if clients[id] == nil {
		client, err := umg.Connect(os.Getenv("UMG_ADDRESS"), key)
		if err != nil {
			return nil, err
		}
		client.NoRetries = noRetries
		clients[id] = client
	}
	return clients[id], nil
}

// method returns the path of a method, its request and an empty answer.
func method(args arguments) (string, proto.Message, protoreflect.MessageType, error) {
	service, name, _ := strings.Cut(args.Method, "/")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("umg.v1." + service))
	if err != nil {
		return "", nil, nil, err
	}
	method := found.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(name))
	if method == nil {
		return "", nil, nil, fmt.Errorf("there is no method %s", args.Method)
	}
	input, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
	if err != nil {
		return "", nil, nil, err
	}
	output, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	if err != nil {
		return "", nil, nil, err
	}
	request := input.New().Interface()
	if len(args.Request) > 0 {
		err = protojson.Unmarshal(args.Request, request)
	}
	lengthen(request, args.LargeTextBytes)
	return "/umg.v1." + args.Method, request, output, err
}

// lengthen gives the text of the last message this size, unless it is 0.
func lengthen(request proto.Message, size int) {
	generation, isGeneration := request.(*v1.GenerateRequest)
	if wrapped, isWrapped := request.(interface{ GetRequest() *v1.GenerateRequest }); isWrapped {
		generation, isGeneration = wrapped.GetRequest(), true
	}
	if size > 0 && isGeneration {
		last := generation.Messages[len(generation.Messages)-1]
		last.Parts[0].GetText().Text = strings.Repeat("word ", size/5+1)[:size]
	}
}

func unary(ctx context.Context, client *umg.Client, args arguments) (object, error) {
	name, request, output, err := method(args)
	if err != nil {
		return nil, err
	}
	answer := output.New().Interface()
	if err := client.Invoke(ctx, name, request, answer); err != nil {
		return nil, err
	}
	return object{"answer": encoded(answer)}, nil
}

func stream(ctx context.Context, client *umg.Client, args arguments) (object, error) {
	name, request, output, err := method(args)
	if err != nil {
		return nil, err
	}
	stream, err := client.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, name)
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(request); err == nil {
		_ = stream.CloseSend()
	}
	events := []json.RawMessage{}
	for {
		message := output.New().Interface()
		switch err := stream.RecvMsg(message); {
		case err == io.EOF:
			return object{"events": events, "ended": "done"}, nil
		case err != nil:
			return object{"events": events}, err
		}
		if events = append(events, encoded(message)); len(events) == args.CancelAfterEvents {
			return object{"events": events, "ended": "cancelled"}, nil // the step's context ends
		}
	}
}

func chat(ctx context.Context, client *umg.Client, args arguments) (object, error) {
	request := &v1.GenerateRequest{Model: args.Model, Messages: []*v1.Message{umg.User(args.Text)}}
	if args.Instructions != "" {
		request.Instructions = umg.User(args.Instructions).Parts
	}
	text := ""
	method := v1.NewGenerationServiceClient(client).StreamGenerate
	for answer, err := range umg.All(ctx, method, &v1.StreamGenerateRequest{Request: request}) {
		if err != nil {
			return nil, err
		}
		for _, event := range answer.GetEvents() {
			text += event.GetTextDelta()
		}
	}
	return object{"value": text}, nil
}

func toolLoop(ctx context.Context, client *umg.Client, args arguments) (object, error) {
	request := &v1.GenerateRequest{}
	if err := protojson.Unmarshal(args.Request, request); err != nil {
		return nil, err
	}
	answer, err := client.RunTools(ctx, request, func(call *v1.ToolCall) (string, error) {
		var weather struct{ City string }
		err := json.Unmarshal([]byte(call.GetArgumentsJson()), &weather)
		return "sunny in " + weather.City, err
	})
	if err != nil {
		return nil, err
	}
	return object{"value": umg.Text(answer)}, nil
}

func floats(ctx context.Context, client *umg.Client, args arguments) (object, error) {
	request := &v1.EmbedRequest{}
	if err := protojson.Unmarshal(args.Request, request); err != nil {
		return nil, err
	}
	answer, err := v1.NewEmbeddingServiceClient(client).Embed(ctx, request)
	if err != nil {
		return nil, err
	}
	return object{"value": object{"count": len(answer.Embeddings), "first": umg.Floats(answer.Embeddings[0])}}, nil
}

func download(ctx context.Context, client *umg.Client, args arguments) (object, error) {
	var data bytes.Buffer
	var last [2]int64
	count := 0
	progress := func(received, total int64) { count, last = count+1, [2]int64{received, total} }
	var mimeType string
	var err error
	if args.TaskID != "" {
		request := &v1.DownloadVideoRequest{TaskId: args.TaskID}
		mimeType, err = umg.Download(umg.All(ctx, v1.NewVideoServiceClient(client).DownloadVideo, request), &data, progress)
	} else {
		mimeType, err = downloadImage(ctx, client, args, &data, progress)
	}
	if err != nil {
		return nil, err
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(data.Bytes()))
	return object{"value": object{"size": data.Len(), "mime_type": mimeType, "sha256": digest, "progress": count, "last": last}}, nil
}

// downloadImage makes an image and writes its bytes, which are in its message or in a file of the gateway.
func downloadImage(ctx context.Context, client *umg.Client, args arguments, to io.Writer, progress func(received, total int64)) (string, error) {
	request := &v1.GenerateImageRequest{}
	if err := protojson.Unmarshal(args.Image, request); err != nil {
		return "", err
	}
	answer, err := v1.NewImageServiceClient(client).GenerateImage(ctx, request)
	if err != nil {
		return "", err
	}
	image := answer.GetResult().GetImages()[0]
	if url := image.GetUrl(); url != "" {
		request := &v1.DownloadFileRequest{Token: path.Base(url)}
		return umg.Download(umg.All(ctx, v1.NewFileServiceClient(client).DownloadFile, request), to, progress)
	}
	size := int64(len(image.GetData()))
	_, err = to.Write(image.GetData())
	progress(size, size)
	return image.GetMimeType(), err
}

// watch submits a video and returns the last state of its task.
func watch(ctx context.Context, client *umg.Client, args arguments) (object, error) {
	request := &v1.CreateVideoTaskRequest{}
	if err := protojson.Unmarshal(args.Request, request); err != nil {
		return nil, err
	}
	videos := v1.NewVideoServiceClient(client)
	created, err := videos.CreateVideoTask(ctx, request)
	if err != nil {
		return nil, err
	}
	last, updates := created.GetTask(), 0
	for update, err := range umg.All(ctx, videos.WatchVideoTask, &v1.WatchVideoTaskRequest{TaskId: last.GetTaskId()}) {
		if err != nil {
			return nil, err
		}
		last, updates = update.GetTask(), updates+1
	}
	return object{"answer": encoded(last), "updates": updates}, nil
}

func encoded(message proto.Message) json.RawMessage {
	text, err := protojson.Marshal(message)
	if err != nil {
		panic(err)
	}
	return text
}

func described(e *umg.Error) object {
	described := object{
		"reason": strings.TrimPrefix(e.Reason.String(), "ERROR_REASON_"), "field": e.Field, "metadata": e.Metadata,
		"code": code.Code(e.Code()).String(), "status": int(e.Code()), "retryable": e.Retryable, "retry_after": nil,
		"request_id": e.RequestID, "message": e.Message(),
	}
	if e.RetryAfter > 0 {
		described["retry_after"] = e.RetryAfter.Seconds()
	}
	return described
}

var reference = regexp.MustCompile(`\$\{(\w+)\.([\w.]+)\}`)

// replaced returns a value of the file with its references to results of former steps replaced.
func replaced(value any, saved object) any {
	switch value := value.(type) {
	case object:
		members := object{}
		for name, member := range value {
			members[name] = replaced(member, saved)
		}
		return members
	case []any:
		items := []any{}
		for _, item := range value {
			items = append(items, replaced(item, saved))
		}
		return items
	case string:
		if whole := reference.FindStringSubmatch(value); whole != nil && whole[0] == value {
			return referred(value, saved)
		}
		return reference.ReplaceAllStringFunc(value, func(found string) string { return fmt.Sprint(referred(found, saved)) })
	}
	return value
}

// referred returns the value that a reference names, nil where there is none, as after a failed step.
func referred(text string, saved object) any {
	found := reference.FindStringSubmatch(text)
	value := saved[found[1]]
	for _, name := range strings.Split(found[2], ".") {
		switch in := value.(type) {
		case object:
			value = in[name]
		case []any:
			index, err := strconv.Atoi(name)
			if value = nil; err == nil && index < len(in) {
				value = in[index]
			}
		default:
			value = nil
		}
	}
	return value
}
