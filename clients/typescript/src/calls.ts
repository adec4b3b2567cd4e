// Calls of the generated clients with a key, a request id, a deadline, retries, and errors that have a reason.
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { type CallOptions, type Client, Code, ConnectError, createClient, makeAnyClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.js";
import type { ErrorReason } from "../gen/umg/v1/error_reason_pb.js";
import type { Protocol } from "./transport.node.js";

const READS = /^(Get|List|Count|Watch|Download)/;
const REFUSED = /^(UNAVAILABLE|UPSTREAM_UNREACHABLE|.*RATE_LIMITED)$/;
const PASSING = /^(UPSTREAM_TIMEOUT|.*RATE_LIMITED)$/;
const NO_CONNECTION = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)$/;
/** Reasons of a status without details, which the library or a proxy has made. */
const BARE: { [code in Code]?: keyof typeof ErrorReason } = {
  [Code.Unavailable]: "UNAVAILABLE",
  [Code.DeadlineExceeded]: "DEADLINE_EXCEEDED",
  [Code.ResourceExhausted]: "BODY_TOO_LARGE",
  [Code.Canceled]: "CANCELLED",
  [Code.Unimplemented]: "NOT_IMPLEMENTED",
};

/** Error of a failed call. It must not extend its cause: every ConnectError would be an `instanceof` it. */
export class UmgError extends Error {
  override readonly name = "UmgError";
  readonly code: Code;
  /** Reason by its name in the schema, UNSPECIFIED for a failure that the gateway did not make. */
  readonly reason: keyof typeof ErrorReason;
  /** Details, whose keys depend on the reason, as the schema documents. */
  readonly metadata: { [key: string]: string };
  /** Path of the field that the error is about, "" for none. */
  readonly field: string;
  /** Seconds to wait before another attempt, undefined where the gateway states none. */
  readonly retryAfter: number | undefined;
  /** Whether the same call can succeed later. */
  readonly retryable: boolean;
  /** Whether nothing was done, so that any call may be repeated. */
  readonly notDone: boolean;

  /** `requestId` is the id of the call in the log of the gateway. */
  constructor(override readonly cause: ConnectError, readonly requestId: string) {
    const info = cause.findDetails(ErrorInfoSchema).find(({ domain }) => domain === "umg");
    const late = !info && cause.code === Code.DeadlineExceeded;
    super(late ? "the call's own deadline passed before the response; give it more time" : cause.rawMessage, { cause });
    const delay = cause.findDetails(RetryInfoSchema)[0]?.retryDelay;
    this.code = cause.code;
    this.reason = (info?.reason as keyof typeof ErrorReason) ?? BARE[cause.code] ?? "UNSPECIFIED";
    this.metadata = info?.metadata ?? {};
    this.field = this.metadata["field"] ?? "";
    this.retryAfter = delay && Number(delay.seconds) + delay.nanos / 1e9;
    this.retryable = this.code === Code.Unavailable || PASSING.test(this.reason);
    const system = cause.cause as { code?: string } | undefined; // an error of Node
    this.notDone = info ? REFUSED.test(this.reason) : NO_CONNECTION.test(system?.code ?? "");
  }
}

/** Options of a client. */
export interface Options {
  /** How often a failed call is repeated if it is a read, or if nothing of it was done. Default 2. */
  retries?: number;
  /** Deadline of calls that have none, in milliseconds; none by default. */
  timeoutMs?: number;
  /** `grpc`, the default of Node, or `connect`, the default of browsers, with the HTTP address of the gateway. */
  protocol?: Protocol;
  /** Options of Node's `tls.connect`, e.g. `ca` for an authority of your own. */
  tls?: object;
}

/** Return the generated client of a service, with the key and the retries. */
export function calls<S extends DescService>(
  service: S, transport: Transport, key: string, defaults: Options,
): Client<S> {
  const stubs = createClient(service, transport) as { [name: string]: (request: unknown, options: object) => unknown };

  /** Yield the messages of a call, which is one for a unary call. */
  async function* answers(method: DescMethod, request: unknown, options: CallOptions = {}): AsyncGenerator<unknown> {
    const headers = new Headers(options.headers);
    if (key && !headers.has("authorization")) headers.set("authorization", `Bearer ${key}`);
    const id = headers.get("x-request-id") ?? crypto.getRandomValues(new Uint32Array(4)).join("-");
    headers.set("x-request-id", id);
    const limit = options.timeoutMs ?? defaults.timeoutMs;
    const end = performance.now() + (limit ?? Infinity);
    let left = defaults.retries ?? 2;
    for (let pauseMs = 200; ; pauseMs *= 2) {
      const stopped = new AbortController();
      const signal = AbortSignal.any([stopped.signal, ...(options.signal ? [options.signal] : [])]);
      const timeoutMs = limit && Math.max(1, Math.ceil(end - performance.now()));
      try {
        const answer = stubs[method.localName]!(request, { ...options, headers, signal, timeoutMs });
        if (method.methodKind === "unary") return yield await answer;
        for await (const message of answer as AsyncIterable<unknown>) {
          left = 0; // half a response cannot be taken back
          yield message;
        }
        return;
      } catch (error) {
        const failed = new UmgError(ConnectError.from(error), id);
        const isSafe = failed.notDone || (failed.code === Code.Unavailable && READS.test(method.name));
        const waitMs = failed.retryAfter === undefined ? pauseMs * (0.5 + Math.random()) : failed.retryAfter * 1000;
        const isTooLong = waitMs > 30_000 || performance.now() + waitMs >= end;
        if (left-- <= 0 || !failed.retryable || !isSafe || isTooLong || signal.aborted) throw failed;
        await new Promise((resolve) => setTimeout(resolve, waitMs));
      } finally {
        stopped.abort(); // the call of a stream that was left
      }
    }
  }

  const first = async (messages: AsyncIterable<unknown>) => {
    for await (const message of messages) return message;
  };
  return makeAnyClient(service, (method) => (request: unknown, options?: CallOptions) => {
    const messages = answers(method, request, options);
    return method.methodKind === "unary" ? first(messages) : messages;
  }) as Client<S>;
}
