package umg;

import com.google.protobuf.ByteString;
import io.grpc.*;
import io.grpc.stub.BlockingClientCall;
import java.io.ByteArrayOutputStream;
import java.lang.Thread; // not that of umg.v1
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;
import umg.v1.*;

/** Client of the Unified Model Gateway, with a stub for each of its services. */
public final class Umg implements AutoCloseable {
  /** Size of the largest message that is received. An answer with vectors can exceed the 4 MiB of gRPC itself. */
  public static final int MAX_ANSWER_BYTES = 64 << 20;
  /** Number of answers after which {@link #runTools} runs no more tools. */
  public static final int MAX_TOOL_ROUNDS = 20;
  private static final Duration MAX_PAUSE = Duration.ofSeconds(30);

  public final AdminServiceGrpc.AdminServiceBlockingV2Stub admin;
  public final EmbeddingServiceGrpc.EmbeddingServiceBlockingV2Stub embeddings;
  public final FileServiceGrpc.FileServiceBlockingV2Stub files;
  public final GenerationServiceGrpc.GenerationServiceBlockingV2Stub generation;
  public final ImageServiceGrpc.ImageServiceBlockingV2Stub images;
  public final ModelServiceGrpc.ModelServiceBlockingV2Stub models;
  public final RerankServiceGrpc.RerankServiceBlockingV2Stub rerank;
  public final VideoServiceGrpc.VideoServiceBlockingV2Stub videos;
  /** The connection with the key, for the other stubs of the generated classes. */
  public final Channel channel;
  private final ManagedChannel connection;

  private final Duration deadline;
  private final int retries;

  /** Makes a client without a deadline and with two retries. The first call connects. */
  public static Umg connect(String address, String key, ChannelCredentials credentials) {
    var connection = Grpc.newChannelBuilder(address, credentials).maxInboundMessageSize(MAX_ANSWER_BYTES);
    return new Umg(connection.build(), key, null, 2);
  }

  /** Makes a client whose calls fail after the deadline, unless it is null, and are repeated as {@link #call} says. */
  public Umg(ManagedChannel connection, String key, Duration deadline, int retries) {
    this.connection = connection;
    this.deadline = deadline;
    this.retries = retries;
    channel = ClientInterceptors.intercept(connection, new Calls(key, deadline));
    admin = AdminServiceGrpc.newBlockingV2Stub(channel);
    embeddings = EmbeddingServiceGrpc.newBlockingV2Stub(channel);
    files = FileServiceGrpc.newBlockingV2Stub(channel);
    generation = GenerationServiceGrpc.newBlockingV2Stub(channel);
    images = ImageServiceGrpc.newBlockingV2Stub(channel);
    models = ModelServiceGrpc.newBlockingV2Stub(channel);
    rerank = RerankServiceGrpc.newBlockingV2Stub(channel);
    videos = VideoServiceGrpc.newBlockingV2Stub(channel);
  }

  @Override
  public void close() {
    connection.shutdownNow();
  }

  /**
   * Returns the result of a stub's method, and throws {@link UmgException} in place of its checked exception. A method
   * that only reads, or that the gateway refused to begin, is called again when it failed, after the time that the
   * failure's {@code RetryInfo} states.
   */
  public <T> T call(Callable<T> method) {
    long began = System.nanoTime();
    for (int attempt = 0; ; attempt++) {
      try {
        return once(method);
      } catch (UmgException failure) {
        var pause = failure.retryAfter != null ? failure.retryAfter : backoff(attempt);
        var left = deadline == null ? MAX_PAUSE : deadline.minusNanos(System.nanoTime() - began);
        boolean late = pause.compareTo(MAX_PAUSE) > 0 || pause.compareTo(left) > 0;
        if (late || attempt >= retries || !failure.repeatable()) throw failure;
        once(() -> {
          Thread.sleep(pause.toMillis());
          return null;
        });
      }
    }
  }

  private static Duration backoff(int attempt) {
    return Duration.ofMillis(ThreadLocalRandom.current().nextLong(100L << attempt, 200L << attempt));
  }

  private static <T> T once(Callable<T> method) {
    try {
      return method.call();
    } catch (StatusException failed) {
      throw new UmgException(failed);
    } catch (RuntimeException error) {
      throw error;
    } catch (Exception interrupted) {
      Thread.currentThread().interrupt();
      throw new UmgException(Status.CANCELLED.withCause(interrupted).asException());
    }
  }

  /** Returns the answers of a stub's stream as they come. Closing it, which {@code try} does, cancels the call. */
  public <A> Stream<A> answers(Supplier<BlockingClientCall<?, A>> method) {
    var calls = new ArrayDeque<BlockingClientCall<?, A>>();
    Callable<A> first = () -> {
      calls.push(method.get());
      return calls.peek().read();
    };
    var answers = Stream.generate(() -> calls.isEmpty() ? call(first) : once(calls.peek()::read));
    Runnable leave = () -> calls.forEach(call -> call.cancel("the stream was closed", null));
    return answers.takeWhile(Objects::nonNull).onClose(leave);
  }

  /** Streams the answer of a model to one text. Closing the stream cancels the call. */
  public Stream<String> chat(String model, String said) {
    return chat(model, said, "");
  }

  /** Streams the answer of a model to one text, under instructions unless they are empty. */
  public Stream<String> chat(String model, String said, String instructions) {
    var request = GenerateRequest.newBuilder().setModel(model).addMessages(user(said));
    if (!instructions.isEmpty()) request.addInstructions(part(instructions));
    var stream = StreamGenerateRequest.newBuilder().setRequest(request).build();
    var answers = answers(() -> generation.streamGenerate(stream));
    return answers.flatMap(answer -> answer.getEventsList().stream()).map(GenerateEvent::getTextDelta);
  }

  /** Generates until the model calls no more tools. {@code tool} runs each call; the model is told what it throws. */
  public GenerateResponse runTools(GenerateRequest request, Tool tool) {
    var next = request.toBuilder();
    for (int round = 1; ; round++) {
      var answer = call(() -> generation.generate(next.build()));
      var first = answer.getCandidatesCount() > 0 ? answer.getCandidates(0) : Candidate.getDefaultInstance();
      var message = first.getMessage();
      var results = Message.newBuilder().setRole(Role.ROLE_TOOL);
      for (var part : message.getPartsList()) {
        if (part.hasToolCall()) results.addPartsBuilder().setToolResult(run(tool, part.getToolCall()));
      }
      if (results.getPartsCount() == 0 || round == MAX_TOOL_ROUNDS) return answer;
      next.addMessages(message).addMessages(results).clearToolChoice(); // a choice that demands a call would never end
    }
  }

  private static ToolResult.Builder run(Tool tool, ToolCall call) {
    var result = ToolResult.newBuilder().setCallId(call.getCallId()).setName(call.getName());
    try {
      return result.addParts(part(tool.run(call)));
    } catch (Exception error) {
      return result.addParts(part(String.valueOf(error.getMessage()))).setIsError(true);
    }
  }

  /** Submits a video and waits for its end. {@code progress} is called with each state of the task. */
  public VideoTask makeVideo(CreateVideoTaskRequest request, Consumer<VideoTask> progress) {
    var task = call(() -> videos.createVideoTask(request)).getTask();
    var watch = WatchVideoTaskRequest.newBuilder().setTaskId(task.getTaskId()).build();
    try (var states = answers(() -> videos.watchVideoTask(watch))) {
      return states.map(WatchVideoTaskResponse::getTask).peek(progress).reduce(task, (before, after) -> after);
    }
  }

  /** Returns the video of a finished task. */
  public Content video(String taskId, Progress progress) {
    var request = DownloadVideoRequest.newBuilder().setTaskId(taskId).build();
    Supplier<BlockingClientCall<?, DownloadVideoResponse>> method = () -> videos.downloadVideo(request);
    return content(method, DownloadVideoResponse::getHead, DownloadVideoResponse::getChunk, progress);
  }

  /** Returns an image: the bytes in it, or those behind the gateway's own link. */
  public Content image(Image image, Progress progress) {
    var url = image.getUrl();
    if (image.hasData()) {
      progress.received(image.getData().size(), image.getData().size());
      return new Content(image.getData().toByteArray(), image.getMimeType());
    }
    if (!url.contains("/files/")) throw new IllegalArgumentException("get the image from its provider by HTTP: " + url);
    var request = DownloadFileRequest.newBuilder().setToken(url.substring(url.lastIndexOf('/') + 1)).build();
    Supplier<BlockingClientCall<?, DownloadFileResponse>> method = () -> files.downloadFile(request);
    return content(method, DownloadFileResponse::getHead, DownloadFileResponse::getChunk, progress);
  }

  private <A> Content content(Supplier<BlockingClientCall<?, A>> method, Function<A, ContentHead> head,
      Function<A, ByteString> chunk, Progress progress) {
    var data = new ByteArrayOutputStream();
    try (var answers = answers(method)) {
      var received = answers.iterator();
      var first = received.hasNext() ? head.apply(received.next()) : ContentHead.getDefaultInstance();
      received.forEachRemaining(answer -> {
        data.writeBytes(chunk.apply(answer).toByteArray());
        progress.received(data.size(), first.hasLengthBytes() ? first.getLengthBytes() : -1);
      });
      return new Content(data.toByteArray(), first.getMimeType());
    }
  }

  /** The bytes of an image or a video. */
  public record Content(byte[] data, String mimeType) {}

  private static Part part(String text) {
    return Part.newBuilder().setText(TextPart.newBuilder().setText(text)).build();
  }

  /** Makes a message of the user. */
  public static Message user(String said) {
    return Message.newBuilder().setRole(Role.ROLE_USER).addParts(part(said)).build();
  }

  /** Returns the text of an answer. */
  public static String text(GenerateResponse answer) {
    var first = answer.getCandidatesList().stream().limit(1);
    var parts = first.flatMap(candidate -> candidate.getMessage().getPartsList().stream());
    return parts.map(part -> part.getText().getText()).reduce("", String::concat);
  }

  /** Returns the numbers of a vector. */
  public static float[] floats(Embedding embedding) {
    var numbers = new float[embedding.getValues().size() / Float.BYTES];
    embedding.getValues().asReadOnlyByteBuffer().order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(numbers);
    return numbers;
  }

  /** Runs the tools of {@link #runTools}. */
  public interface Tool {
    String run(ToolCall call) throws Exception;
  }

  /** Is told the bytes of a download that were received, and all its bytes, or -1. */
  public interface Progress {
    void received(long bytes, long total);
  }
}
