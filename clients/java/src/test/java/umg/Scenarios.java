package umg;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message; // not that of umg.v1
import com.google.protobuf.MessageOrBuilder;
import com.google.protobuf.util.JsonFormat;
import io.grpc.CallOptions;
import io.grpc.ClientInterceptors;
import io.grpc.InsecureChannelCredentials;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.stub.BlockingClientCall;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.function.ObjLongConsumer;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import umg.v1.*;

/** Runs the scenarios of {@code UMG_SCENARIOS} and prints the results of each as a line of JSON. Judges nothing. */
public final class Scenarios {
  private static final Gson JSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
  private static final Pattern REFERENCE = Pattern.compile("\\$\\{(\\w+)\\.([\\w.]+)}");
  private static final Map<String, MethodDescriptor<?, ?>> METHODS = Stream.of(
          AccountServiceGrpc.getServiceDescriptor(), AdminServiceGrpc.getServiceDescriptor(),
          AlertServiceGrpc.getServiceDescriptor(), AuditServiceGrpc.getServiceDescriptor(),
          ChannelServiceGrpc.getServiceDescriptor(), ConfigServiceGrpc.getServiceDescriptor(),
          TaskServiceGrpc.getServiceDescriptor(), UserServiceGrpc.getServiceDescriptor(),
          EmbeddingServiceGrpc.getServiceDescriptor(),
          FileServiceGrpc.getServiceDescriptor(), GenerationServiceGrpc.getServiceDescriptor(),
          ImageServiceGrpc.getServiceDescriptor(), ModelPriceServiceGrpc.getServiceDescriptor(), ModelServiceGrpc.getServiceDescriptor(),
          ModerationServiceGrpc.getServiceDescriptor(), RerankServiceGrpc.getServiceDescriptor(),
          SpeechServiceGrpc.getServiceDescriptor(), TranscriptionServiceGrpc.getServiceDescriptor(),
          VideoServiceGrpc.getServiceDescriptor())
      .flatMap(service -> service.getMethods().stream())
      .collect(Collectors.toMap(MethodDescriptor::getFullMethodName, Function.identity()));

  private static final Map<String, Umg> CLIENTS = new HashMap<>();

  public static void main(String[] arguments) throws Exception {
    var only = List.of(System.getenv().getOrDefault("UMG_ONLY", "").split(","));
    var file = JsonParser.parseString(Files.readString(Path.of(System.getenv("UMG_SCENARIOS")))).getAsJsonObject();
    var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (var element : file.getAsJsonArray("scenarios")) {
      var scenario = element.getAsJsonObject();
      var name = scenario.get("name").getAsString();
      if (!only.contains("") && !only.contains(name)) continue;
      var line = object("name", new JsonPrimitive(name));
      line.add("results", run(scenario.getAsJsonArray("steps")));
      out.println(JSON.toJson(line));
    }
    CLIENTS.values().forEach(Umg::close);
  }

  private static JsonArray run(JsonArray steps) {
    var results = new JsonArray();
    var saved = new JsonObject();
    for (var element : steps) {
      var step = element.getAsJsonObject();
      var args = step.has("args") ? replaced(step.get("args"), saved).getAsJsonObject() : new JsonObject();
      JsonObject result;
      try {
        result = step(step.get("call").getAsString(), args);
      } catch (UmgException error) {
        result = object("error", described(error));
      } catch (Exception failure) { // a mistake in the file or in this client: the other scenarios go on
        result = object("failure", new JsonPrimitive(failure.toString()));
      }
      if (step.has("save")) saved.add(step.get("save").getAsString(), result);
      results.add(result);
    }
    return results;
  }

  private static JsonObject step(String call, JsonObject args) throws Exception {
    var key = args.has("key") ? args.get("key").getAsString() : System.getenv("UMG_API_KEY");
    if (key.equals("admin")) key = System.getenv("UMG_ADMIN_KEY");
    var credentials = InsecureChannelCredentials.create();
    var umg = CLIENTS.computeIfAbsent(key, each -> new Umg(System.getenv("UMG_ADDRESS"), each, credentials));
    umg.deadline = args.has("deadline_ms") ? Duration.ofMillis(args.get("deadline_ms").getAsLong()) : null;
    umg.retries = args.has("retries") ? args.get("retries").getAsInt() : 2;
    return switch (call) {
      case "unary" -> unary(umg, args);
      case "stream" -> stream(umg, args);
      case "chat" -> object("value", new JsonPrimitive(chat(umg, args)));
      case "tool_loop" -> {
        var request = parsed(GenerateRequest.newBuilder(), args.get("request")).build();
        yield object("value", new JsonPrimitive(Umg.text(umg.runTools(request, Scenarios::weather))));
      }
      case "floats" -> {
        var request = parsed(EmbedRequest.newBuilder(), args.get("request")).build();
        var stub = EmbeddingServiceGrpc.newBlockingV2Stub(umg.channel);
        var vectors = umg.call(() -> stub.embed(request)).getEmbeddingsList();
        var value = object("count", new JsonPrimitive(vectors.size()));
        value.add("first", JSON.toJsonTree(Umg.floats(vectors.get(0))));
        yield object("value", value);
      }
      case "download" -> download(umg, args);
      case "watch" -> watch(umg, parsed(CreateVideoTaskRequest.newBuilder(), args.get("request")).build());
      default -> throw new IllegalArgumentException("there is no call " + call);
    };
  }

  /** A method that is named by the arguments, with the channel on which the metadata of its response is recorded. */
  private record Named(MethodDescriptor<Message, Message> method,
      Message request, io.grpc.Channel channel, AtomicReference<Metadata> headers) {

    JsonObject with(JsonObject result) {
      var metadata = headers.get() == null ? new Metadata() : headers.get();
      for (var name : List.of("x-request-id", "x-umg-dropped")) {
        var value = metadata.get(key(name));
        if (value != null) result.addProperty(name.equals("x-request-id") ? "request_id" : "dropped", value);
      }
      return result;
    }
  }

  @SuppressWarnings("unchecked")
  private static Named named(Umg umg, JsonObject args) throws Exception {
    var name = "umg.v1." + args.get("method").getAsString();
    var method = (MethodDescriptor<Message, Message>) METHODS.get(name);
    var request = args.has("request") ? args.getAsJsonObject("request") : new JsonObject();
    if (args.has("large_text_bytes")) enlarge(request, args.get("large_text_bytes").getAsInt());
    var sent = new Metadata();
    var metadata = args.has("metadata") ? args.getAsJsonObject("metadata") : new JsonObject();
    metadata.entrySet().forEach(entry -> sent.put(key(entry.getKey()), entry.getValue().getAsString()));
    var marshaller = (MethodDescriptor.PrototypeMarshaller<Message>) method.getRequestMarshaller();
    var headers = new AtomicReference<Metadata>();
    var capture = MetadataUtils.newCaptureMetadataInterceptor(headers, new AtomicReference<>());
    var channel = ClientInterceptors.intercept(umg.channel, MetadataUtils.newAttachHeadersInterceptor(sent), capture);
    var builder = marshaller.getMessagePrototype().newBuilderForType();
    return new Named(method, parsed(builder, request).build(), channel, headers);
  }

  private static JsonObject unary(Umg umg, JsonObject args) throws Exception {
    var named = named(umg, args);
    var options = CallOptions.DEFAULT;
    var answer = umg.call(() -> ClientCalls.blockingV2UnaryCall(named.channel, named.method, options, named.request));
    return named.with(object("answer", json(answer)));
  }

  private static JsonObject stream(Umg umg, JsonObject args) throws Exception {
    var named = named(umg, args);
    long limit = args.has("cancel_after_events") ? args.get("cancel_after_events").getAsLong() : Long.MAX_VALUE;
    var events = new JsonArray();
    var result = object("events", events);
    Supplier<BlockingClientCall<?, Message>> method = () -> ClientCalls.blockingV2ServerStreamingCall(
        named.channel, named.method, CallOptions.DEFAULT, named.request);
    try (var answers = umg.answers(method)) {
      answers.limit(limit).forEach(answer -> events.add(json(answer)));
      result.addProperty("ended", events.size() == limit ? "cancelled" : "done");
    } catch (UmgException error) {
      result.add("error", described(error));
    }
    return named.with(result);
  }

  private static JsonObject download(Umg umg, JsonObject args) throws Exception {
    var progress = new ArrayList<List<Long>>();
    ObjLongConsumer<ContentHead> record = (head, received) -> progress.add(List.of(received, head.getTotalBytes()));
    var content = args.has("task_id") ? video(umg, args.get("task_id").getAsString(), record)
        : image(umg, parsed(GenerateImageRequest.newBuilder(), args.get("image")).build(), record);
    var value = object("size", new JsonPrimitive(content.data().length));
    value.addProperty("mime_type", content.mimeType());
    value.addProperty("sha256", HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content.data())));
    value.addProperty("progress", progress.size());
    value.add("last", JSON.toJsonTree(progress.get(progress.size() - 1)));
    return object("value", value);
  }

  private static Umg.Content video(Umg umg, String taskId, ObjLongConsumer<ContentHead> record) {
    var videos = VideoServiceGrpc.newBlockingV2Stub(umg.channel);
    var request = DownloadVideoRequest.newBuilder().setTaskId(taskId).build();
    var answers = umg.answers(() -> videos.downloadVideo(request));
    return Umg.download(answers, DownloadVideoResponse::getHead, DownloadVideoResponse::getChunk, record);
  }

  /** Makes an image and returns its bytes, which are in its message or in a file of the gateway. */
  private static Umg.Content image(Umg umg, GenerateImageRequest request, ObjLongConsumer<ContentHead> record) {
    var images = ImageServiceGrpc.newBlockingV2Stub(umg.channel);
    var image = umg.call(() -> images.generateImage(request)).getResult().getImages(0);
    if (image.hasData()) {
      record.accept(ContentHead.newBuilder().setTotalBytes(image.getData().size()).build(), image.getData().size());
      return new Umg.Content(image.getData().toByteArray(), image.getMimeType());
    }
    var token = image.getUrl().substring(image.getUrl().lastIndexOf('/') + 1);
    var files = FileServiceGrpc.newBlockingV2Stub(umg.channel);
    var answers = umg.answers(() -> files.downloadFile(DownloadFileRequest.newBuilder().setToken(token).build()));
    return Umg.download(answers, DownloadFileResponse::getHead, DownloadFileResponse::getChunk, record);
  }

  private static String chat(Umg umg, JsonObject args) {
    var request = GenerateRequest.newBuilder().setModel(args.get("model").getAsString());
    request.addMessages(Umg.user(args.get("text").getAsString()));
    if (args.has("instructions")) {
      request.addAllInstructions(Umg.user(args.get("instructions").getAsString()).getPartsList());
    }
    var stream = StreamGenerateRequest.newBuilder().setRequest(request).build();
    var generation = GenerationServiceGrpc.newBlockingV2Stub(umg.channel);
    try (var answers = umg.answers(() -> generation.streamGenerate(stream))) {
      var events = answers.flatMap(answer -> answer.getEventsList().stream());
      return events.map(GenerateEvent::getTextDelta).collect(Collectors.joining());
    }
  }

  private static JsonObject watch(Umg umg, CreateVideoTaskRequest request) {
    var videos = VideoServiceGrpc.newBlockingV2Stub(umg.channel);
    var task = umg.call(() -> videos.createVideoTask(request)).getTask();
    var watch = WatchVideoTaskRequest.newBuilder().setTaskId(task.getTaskId()).build();
    try (var answers = umg.answers(() -> videos.watchVideoTask(watch))) {
      var updates = answers.map(WatchVideoTaskResponse::getTask).toList();
      var result = object("answer", json(updates.get(updates.size() - 1)));
      result.addProperty("updates", updates.size());
      return result;
    }
  }

  private static String weather(ToolCall call) {
    return "sunny in " + JsonParser.parseString(call.getArgumentsJson()).getAsJsonObject().get("city").getAsString();
  }

  /** Makes the text of the last message this long. */
  private static void enlarge(JsonObject request, int size) {
    var messages = (request.has("request") ? request.getAsJsonObject("request") : request).getAsJsonArray("messages");
    var part = messages.get(messages.size() - 1).getAsJsonObject().getAsJsonArray("parts").get(0).getAsJsonObject();
    part.getAsJsonObject("text").addProperty("text", "word ".repeat(size / 5 + 1).substring(0, size));
  }

  /** Replaces {@code ${NAME.path}} by values of former results. */
  private static JsonElement replaced(JsonElement value, JsonObject saved) {
    if (value.isJsonObject()) {
      var members = new JsonObject();
      for (var member : value.getAsJsonObject().entrySet()) {
        members.add(member.getKey(), replaced(member.getValue(), saved));
      }
      return members;
    }
    if (value.isJsonArray()) {
      var items = new JsonArray();
      value.getAsJsonArray().forEach(item -> items.add(replaced(item, saved)));
      return items;
    }
    if (!value.isJsonPrimitive() || !value.getAsJsonPrimitive().isString()) return value;
    var whole = REFERENCE.matcher(value.getAsString());
    if (whole.matches()) return found(whole.group(1), whole.group(2), saved);
    return new JsonPrimitive(REFERENCE.matcher(value.getAsString()).replaceAll(match -> {
      var found = found(match.group(1), match.group(2), saved);
      return java.util.regex.Matcher.quoteReplacement(found.isJsonPrimitive() ? found.getAsString() : found.toString());
    }));
  }

  private static JsonElement found(String name, String path, JsonObject saved) {
    JsonElement value = saved.get(name);
    for (var step : path.split("\\.")) {
      if (value == null || value.isJsonNull()) break;
      if (value.isJsonArray()) {
        var items = value.getAsJsonArray();
        value = items.size() > Integer.parseInt(step) ? items.get(Integer.parseInt(step)) : null;
      } else {
        value = value.isJsonObject() ? value.getAsJsonObject().get(step) : null;
      }
    }
    return value == null ? JsonNull.INSTANCE : value;
  }

  private static JsonObject described(UmgException error) {
    var told = object("reason", new JsonPrimitive(error.reason.name().substring("ERROR_REASON_".length())));
    told.addProperty("field", error.field);
    told.addProperty("code", error.getStatus().getCode().name());
    told.addProperty("status", error.getStatus().getCode().value());
    told.addProperty("retryable", error.retryable);
    told.addProperty("retry_after", error.retryAfter == null ? null : error.retryAfter.toMillis() / 1000.0);
    told.addProperty("request_id", error.requestId);
    told.add("metadata", JSON.toJsonTree(error.metadata));
    told.addProperty("message", error.getMessage());
    return told;
  }

  private static JsonObject object(String name, JsonElement value) {
    var object = new JsonObject();
    object.add(name, value);
    return object;
  }

  private static Metadata.Key<String> key(String name) {
    return Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
  }

  private static <B extends Message.Builder> B parsed(B builder, JsonElement value) throws Exception {
    if (value != null && !value.isJsonNull()) JsonFormat.parser().merge(value.toString(), builder);
    return builder;
  }

  private static JsonElement json(MessageOrBuilder message) {
    try {
      return JsonParser.parseString(JsonFormat.printer().print(message));
    } catch (InvalidProtocolBufferException malformed) {
      throw new IllegalStateException(malformed);
    }
  }
}
