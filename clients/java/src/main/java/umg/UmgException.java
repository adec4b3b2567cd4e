package umg;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.grpc.*;
import io.grpc.protobuf.StatusProto;
import java.net.ConnectException;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.*;
import java.util.stream.Stream;
import umg.v1.ErrorReason;

/** A failed call, with the status of gRPC. */
public final class UmgException extends StatusRuntimeException {
  private static final String READS = "(Get|List|Count|Watch|Download).*";
  private static final String REFUSED = "UNAVAILABLE|UPSTREAM_UNREACHABLE|.*RATE_LIMITED";
  private static final String PASSING = "UPSTREAM_TIMEOUT|.*RATE_LIMITED";
  /** Reasons of statuses that gRPC or a proxy has made, where they are not named as the status. */
  private static final Map<Status.Code, String> BARE =
      Map.of(Status.Code.RESOURCE_EXHAUSTED, "BODY_TOO_LARGE", Status.Code.UNIMPLEMENTED, "NOT_IMPLEMENTED");

  /** Reason, which documents the keys of {@code metadata}. Unspecified where it is newer than this client. */
  public final ErrorReason reason;
  /** What varies in the message, by name. */
  public final Map<String, String> metadata;
  /** Path of the wrong field, or an empty text. */
  public final String field;
  /** Id by which the operator finds the call. */
  public final String requestId;
  /** Time to wait before another attempt. Null where the gateway does not state it. */
  public final Duration retryAfter;
  /** Whether the same call can succeed later. */
  public final boolean retryable;
  /** Whether the client may repeat it: the call only reads, or nothing of it was done. */
  final boolean isSafe;

  UmgException(Status status, Metadata trailers, String method, String requestId) {
    super(status, trailers);
    var info = ErrorInfo.getDefaultInstance();
    var retry = RetryInfo.getDefaultInstance();
    try {
      for (var detail : StatusProto.fromStatusAndTrailers(status, trailers).getDetailsList()) {
        if (detail.is(ErrorInfo.class)) info = detail.unpack(ErrorInfo.class);
        if (detail.is(RetryInfo.class)) retry = detail.unpack(RetryInfo.class);
      }
    } catch (InvalidProtocolBufferException malformed) {
      info = ErrorInfo.getDefaultInstance(); // details of somebody else
    }
    boolean isOurs = info.getDomain().equals("umg");
    var name = isOurs ? info.getReason() : BARE.getOrDefault(status.getCode(), status.getCode().name());
    var value = ErrorReason.getDescriptor().findValueByName("ERROR_REASON_" + name);
    var delay = retry.getRetryDelay();
    reason = value == null ? ErrorReason.ERROR_REASON_UNSPECIFIED : ErrorReason.valueOf(value);
    metadata = info.getMetadataMap();
    field = metadata.getOrDefault("field", "");
    this.requestId = requestId;
    retryAfter = retry.hasRetryDelay() ? Duration.ofSeconds(delay.getSeconds(), delay.getNanos()) : null;
    retryable = status.getCode() == Status.Code.UNAVAILABLE || name.matches(PASSING);
    var causes = Stream.iterate(status.getCause(), Objects::nonNull, Throwable::getCause);
    boolean isRefused = isOurs && name.matches(REFUSED)
        || causes.anyMatch(cause -> cause instanceof ConnectException || cause instanceof UnknownHostException);
    isSafe = retryable && (isRefused || status.getCode() == Status.Code.UNAVAILABLE && method.matches(READS));
  }

  @Override
  public String getMessage() {
    boolean isLate = reason == ErrorReason.ERROR_REASON_DEADLINE_EXCEEDED;
    var text = isLate ? "the call's own deadline passed; give it more time" : getStatus().getDescription();
    return reason + ": " + text + " (request id " + requestId + ")";
  }
}
