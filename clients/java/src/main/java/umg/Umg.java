package umg;

import com.google.protobuf.ByteString;
import io.grpc.*;
import io.grpc.stub.BlockingClientCall;
import java.io.ByteArrayOutputStream;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.function.*;
import java.util.stream.Stream;
import umg.v1.*;

/** Client of the Unified Model Gateway: a connection for the generated stubs, whose methods {@link #call} calls. */
public final class Umg implements AutoCloseable {
  /** Connection of the stubs: {@code GenerationServiceGrpc.newBlockingV2Stub(umg.channel)}. */
  public final Channel channel;
  /** Time after which a call fails. Null is none. */
  public Duration deadline;
  /** Number of times that a failed call is repeated. */
  public int retries = 2;
  private final ManagedChannel connection;
  private final String key;

  /** Makes a client of the gateway at {@code HOST:PORT}. The first call connects. An empty key sends none. */
  public Umg(String address, String key, ChannelCredentials credentials) {
    connection = Grpc.newChannelBuilder(address, credentials).maxInboundMessageSize(64 << 20).build();
    channel = ClientInterceptors.intercept(connection, this::begin);
    this.key = key;
  }

  @Override
  public void close() {
    connection.shutdownNow();
  }

  /** Gives a call the key, a request id and the deadline, and its failure the exception of this client as the cause. */
  private <Q, A> ClientCall<Q, A> begin(MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
    var limited = deadline == null || options.getDeadline() != null ? options : options.withDeadlineAfter(deadline);
    return new ForwardingClientCall.SimpleForwardingClientCall<>(next.newCall(method, limited)) {
      @Override
      public void start(Listener<A> listener, Metadata headers) {
        if (!key.isEmpty()) addIfAbsent(headers, "authorization", "Bearer " + key);
        var id = addIfAbsent(headers, "x-request-id", UUID.randomUUID().toString());
        super.start(new ForwardingClientCallListener.SimpleForwardingClientCallListener<>(listener) {
          @Override
          public void onClose(Status status, Metadata trailers) {
            var failure = new UmgException(status, trailers, method.getBareMethodName(), id);
            super.onClose(status.isOk() ? status : status.withCause(failure), trailers);
          }
        }, headers);
      }
    };
  }

  private static String addIfAbsent(Metadata headers, String name, String value) {
    var key = Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
    if (!headers.containsKey(key)) headers.put(key, value);
    return headers.get(key);
  }

  /** A method of a stub with its request. */
  public interface Call<T> {
    T make() throws StatusException, InterruptedException;
  }

  /**
   * Returns the result of a stub's method, or throws {@link UmgException}. A call that only reads, or of which nothing
   * was done, is repeated after the time that the failure's {@code RetryInfo} states.
   */
  public <T> T call(Call<T> method) {
    return attempts(method, retries);
  }

  private <T> T attempts(Call<T> method, int left) {
    long end = System.nanoTime() + (deadline == null ? Duration.ofDays(1) : deadline).toNanos();
    for (int backoff = 100; ; backoff *= 2, left--) {
      try {
        return method.make();
      } catch (StatusException | InterruptedException error) {
        if (error instanceof InterruptedException) java.lang.Thread.currentThread().interrupt();
        var status = Status.fromThrowable(error);
        var local = new UmgException(status, new Metadata(), "", "");
        var failure = status.getCause() instanceof UmgException told ? told : local;
        failure.fillInStackTrace(); // of this thread
        var random = Duration.ofMillis(ThreadLocalRandom.current().nextInt(backoff, 2 * backoff));
        var pause = Objects.requireNonNullElse(failure.retryAfter, random);
        boolean isLong = pause.toSeconds() > 30 || System.nanoTime() + pause.toNanos() > end;
        if (left <= 0 || !failure.isSafe || isLong) throw failure;
        LockSupport.parkNanos(pause.toNanos());
      }
    }
  }

  /** Returns the responses of a stub's stream as they come. Closing it, which {@code try} does, cancels the call. */
  public <A> Stream<A> answers(Supplier<BlockingClientCall<?, A>> method) {
    var calls = new ArrayDeque<BlockingClientCall<?, A>>();
    Call<A> first = () -> {
      calls.push(method.get());
      return calls.peek().read();
    };
    var answers = Stream.generate(() -> calls.isEmpty() ? call(first) : attempts(calls.peek()::read, 0));
    Runnable leave = () -> calls.forEach(call -> call.cancel("the stream was closed", null));
    return answers.takeWhile(Objects::nonNull).onClose(leave);
  }

  /** Returns the first answer without tool calls, or the twentieth. The model is told what {@code tool} throws. */
  public GenerateResponse runTools(GenerateRequest request, Function<ToolCall, String> tool) {
    var sent = request.toBuilder();
    for (int count = 1; ; count++) {
      var answer = call(() -> GenerationServiceGrpc.newBlockingV2Stub(channel).generate(sent.build()));
      var results = Message.newBuilder().setRole(Role.ROLE_TOOL);
      for (var part : message(answer).getPartsList()) {
        if (part.hasToolCall()) results.addPartsBuilder().setToolResult(result(part.getToolCall(), tool));
      }
      if (results.getPartsCount() == 0 || count == 20) return answer;
      sent.addMessages(message(answer)).addMessages(results).clearToolChoice(); // it may demand a call
    }
  }

  private static ToolResult.Builder result(ToolCall call, Function<ToolCall, String> tool) {
    var result = ToolResult.newBuilder().setCallId(call.getCallId()).setName(call.getName());
    try {
      return result.addAllParts(user(tool.apply(call)).getPartsList());
    } catch (RuntimeException error) {
      return result.addAllParts(user(error.toString()).getPartsList()).setIsError(true);
    }
  }

  /**
   * Returns the content that {@code downloadVideo} or {@code downloadFile} streams to {@link #answers}, by the getters
   * of its messages. After each chunk, {@code progress} is told the head of the content and the number of bytes so far.
   */
  public static <A> Content download(Stream<A> answers, Function<A, ContentHead> head, Function<A, ByteString> chunk,
      ObjLongConsumer<ContentHead> progress) {
    var data = new ByteArrayOutputStream();
    try (answers) {
      var received = answers.iterator();
      var first = head.apply(received.next());
      received.forEachRemaining(answer -> {
        data.writeBytes(chunk.apply(answer).toByteArray());
        progress.accept(first, data.size());
      });
      return new Content(data.toByteArray(), first.getMimeType());
    }
  }

  /** The bytes of an image or a video. */
  public record Content(byte[] data, String mimeType) {}

  /** Makes a message of the user. */
  public static Message user(String said) {
    var part = Part.newBuilder().setText(TextPart.newBuilder().setText(said));
    return Message.newBuilder().setRole(Role.ROLE_USER).addParts(part).build();
  }

  /** Returns the text of a response. */
  public static String text(GenerateResponse answer) {
    return message(answer).getPartsList().stream().map(part -> part.getText().getText()).reduce("", String::concat);
  }

  private static Message message(GenerateResponse answer) {
    return answer.getCandidatesCount() == 0 ? Message.getDefaultInstance() : answer.getCandidates(0).getMessage();
  }

  /** Returns the numbers of a vector. */
  public static float[] floats(Embedding embedding) {
    var numbers = new float[embedding.getValues().size() / Float.BYTES];
    embedding.getValues().asReadOnlyByteBuffer().order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(numbers);
    return numbers;
  }
}
