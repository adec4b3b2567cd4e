package umg;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusException;
import io.grpc.protobuf.StatusProto;
import java.net.ConnectException;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import umg.v1.ErrorReason;

/** A failed call. Its cause is the exception of gRPC. */
public final class UmgException extends RuntimeException {
  private static final Pattern READS = Pattern.compile("(Get|List|Count|Watch|Download).*");
  private static final Set<ErrorReason> REFUSALS = Set.of(
      ErrorReason.ERROR_REASON_UNAVAILABLE,
      ErrorReason.ERROR_REASON_RATE_LIMITED,
      ErrorReason.ERROR_REASON_UPSTREAM_RATE_LIMITED,
      ErrorReason.ERROR_REASON_UPSTREAM_UNREACHABLE);
  private static final Set<ErrorReason> PASSING = Set.of(
      ErrorReason.ERROR_REASON_RATE_LIMITED,
      ErrorReason.ERROR_REASON_UPSTREAM_RATE_LIMITED,
      ErrorReason.ERROR_REASON_UPSTREAM_TIMEOUT);

  public final Status.Code code;
  /** Reason, which documents the keys of {@code metadata}. Unspecified where it is newer than this client. */
  public final ErrorReason reason;
  /** What varies in the message, by name. */
  public final Map<String, String> metadata;
  /** Id by which the operator finds the call. */
  public final String requestId;
  /** Time to wait before another attempt. Null where the gateway does not state it. */
  public final Duration retryAfter;
  private final String method;
  private final boolean ours;

  UmgException(StatusException failed) {
    super(failed);
    var info = ErrorInfo.getDefaultInstance();
    var retry = RetryInfo.getDefaultInstance();
    try {
      for (var detail : StatusProto.fromThrowable(failed).getDetailsList()) {
        if (detail.is(ErrorInfo.class)) info = detail.unpack(ErrorInfo.class);
        if (detail.is(RetryInfo.class)) retry = detail.unpack(RetryInfo.class);
      }
    } catch (InvalidProtocolBufferException malformed) {
      info = ErrorInfo.getDefaultInstance(); // details of somebody else
    }
    var trailers = failed.getTrailers() == null ? new Metadata() : failed.getTrailers();
    code = failed.getStatus().getCode();
    ours = info.getDomain().equals("umg");
    reason = ours ? named(info.getReason()) : bare(code);
    metadata = info.getMetadataMap();
    requestId = trailers.containsKey(Calls.REQUEST_ID) ? trailers.get(Calls.REQUEST_ID) : "";
    method = trailers.containsKey(Calls.METHOD) ? trailers.get(Calls.METHOD) : "";
    var delay = retry.getRetryDelay();
    retryAfter = retry.hasRetryDelay() ? Duration.ofSeconds(delay.getSeconds(), delay.getNanos()) : null;
  }

  /** Returns the path of the wrong field, or an empty text. */
  public String field() {
    return metadata.getOrDefault("field", "");
  }

  /** Returns whether a later attempt may succeed. */
  public boolean retryable() {
    return code == Status.Code.UNAVAILABLE || PASSING.contains(reason);
  }

  @Override
  public String getMessage() {
    var status = ((StatusException) getCause()).getStatus();
    var text = ours ? status.getDescription() : switch (code) {
      case UNAVAILABLE -> "the connection to the gateway failed: " + cause(status);
      case DEADLINE_EXCEEDED -> "the call took longer than its own deadline";
      case RESOURCE_EXHAUSTED -> "the answer is larger than this client accepts";
      default -> status.getDescription();
    };
    return text == null ? code.name() : text;
  }

  private static String cause(Status status) {
    return status.getCause() == null ? status.getDescription() : status.getCause().getMessage();
  }

  @Override
  public String toString() {
    return reason.name().substring("ERROR_REASON_".length()) + ": " + getMessage() + " (request id " + requestId + ")";
  }

  /** Returns whether the call may be repeated: it only reads, or nothing of it was executed. */
  boolean repeatable() {
    boolean read = READS.matcher(method).matches();
    var causes = Stream.iterate(getCause(), cause -> cause != null, Throwable::getCause);
    return read && code == Status.Code.UNAVAILABLE || ours && REFUSALS.contains(reason)
        || causes.anyMatch(cause -> cause instanceof ConnectException || cause instanceof UnknownHostException);
  }

  private static ErrorReason named(String name) {
    var reasons = Stream.of(ErrorReason.values()).filter(reason -> reason.name().equals("ERROR_REASON_" + name));
    return reasons.findAny().orElse(ErrorReason.ERROR_REASON_UNSPECIFIED);
  }

  /** Returns the reason of a status that gRPC itself has made. */
  private static ErrorReason bare(Status.Code code) {
    return switch (code) {
      case UNAVAILABLE -> ErrorReason.ERROR_REASON_UNAVAILABLE;
      case DEADLINE_EXCEEDED -> ErrorReason.ERROR_REASON_DEADLINE_EXCEEDED;
      case RESOURCE_EXHAUSTED -> ErrorReason.ERROR_REASON_BODY_TOO_LARGE;
      case CANCELLED -> ErrorReason.ERROR_REASON_CANCELLED;
      case UNIMPLEMENTED -> ErrorReason.ERROR_REASON_NOT_IMPLEMENTED;
      default -> ErrorReason.ERROR_REASON_UNSPECIFIED;
    };
  }
}
