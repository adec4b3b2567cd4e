package umg;

import io.grpc.*;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import java.time.Duration;
import java.util.UUID;

/** Gives each call the key, a request id and a deadline, and tells its failure the id and the method. */
record Calls(String key, Duration deadline) implements ClientInterceptor {
  static final Metadata.Key<String> AUTHORIZATION = name("authorization");
  static final Metadata.Key<String> REQUEST_ID = name("x-request-id");
  static final Metadata.Key<String> METHOD = name("x-umg-method"); // set by this client alone

  private static Metadata.Key<String> name(String name) {
    return Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
  }

  @Override
  public <Q, A> ClientCall<Q, A> interceptCall(MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
    boolean limited = deadline == null || options.getDeadline() != null;
    var limits = limited ? options : options.withDeadlineAfter(deadline);
    return new SimpleForwardingClientCall<>(next.newCall(method, limits)) {
      @Override
      public void start(Listener<A> listener, Metadata headers) {
        if (!key.isEmpty() && !headers.containsKey(AUTHORIZATION)) headers.put(AUTHORIZATION, "Bearer " + key);
        if (!headers.containsKey(REQUEST_ID)) headers.put(REQUEST_ID, UUID.randomUUID().toString().replace("-", ""));
        var id = headers.get(REQUEST_ID);
        super.start(new SimpleForwardingClientCallListener<>(listener) {
          @Override
          public void onClose(Status status, Metadata trailers) {
            var told = new Metadata();
            told.merge(trailers);
            told.discardAll(REQUEST_ID);
            told.put(REQUEST_ID, id);
            told.put(METHOD, method.getBareMethodName());
            super.onClose(status, told);
          }
        }, headers);
      }
    };
  }
}
