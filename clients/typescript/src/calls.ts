// Calls of the generated clients with a key, a request id, a deadline, retries, and errors that have a reason.
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { type CallOptions, type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.js";
import { ErrorReason } from "../gen/umg/v1/error_reason_pb.js";

const MAX_WAIT_MS = 30_000;
const READS = /^(Get|List|Count|Watch|Download)/;
const LIMITS = new Set([ErrorReason.RATE_LIMITED, ErrorReason.UPSTREAM_RATE_LIMITED]);
const NOT_DONE = new Set([...LIMITS, ErrorReason.UNAVAILABLE, ErrorReason.UPSTREAM_UNREACHABLE]);
const NO_CONNECTION = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);
/** Reasons of a status without details, which the library or a proxy has made. */
const BARE: { [code in Code]?: ErrorReason } = {
  [Code.Unavailable]: ErrorReason.UNAVAILABLE,
  [Code.DeadlineExceeded]: ErrorReason.DEADLINE_EXCEEDED,
  [Code.ResourceExhausted]: ErrorReason.BODY_TOO_LARGE,
  [Code.Canceled]: ErrorReason.CANCELLED,
  [Code.Unimplemented]: ErrorReason.NOT_IMPLEMENTED,
};

/** Error of a failed call. Its `cause` is the ConnectError, which it must not extend: every ConnectError would be an
 * `instanceof` it. */
export class UmgError extends Error {
  override readonly name = "UmgError";
  readonly code: Code;
  /** A reason that is newer than this client is UNSPECIFIED. */
  readonly reason: ErrorReason;
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
    super(late ? "the call's own deadline passed before the answer; give it more time" : cause.rawMessage, { cause });
    const reason = info ? ErrorReason[info.reason as keyof typeof ErrorReason] : BARE[cause.code];
    const delay = cause.findDetails(RetryInfoSchema)[0]?.retryDelay;
    this.code = cause.code;
    this.reason = reason ?? ErrorReason.UNSPECIFIED;
    this.metadata = info?.metadata ?? {};
    this.field = this.metadata["field"] ?? "";
    this.retryAfter = delay && Number(delay.seconds) + delay.nanos / 1e9;
    this.retryable =
      this.code === Code.Unavailable || LIMITS.has(this.reason) || this.reason === ErrorReason.UPSTREAM_TIMEOUT;
    this.notDone = info ? NOT_DONE.has(this.reason) : NO_CONNECTION.has((cause.cause as { code?: string })?.code ?? "");
  }

  override toString(): string {
    return `${this.name}: ${ErrorReason[this.reason]}: ${this.message} (request id ${this.requestId})`;
  }
}

/** Options of all calls of a client. */
export interface Defaults {
  /** How often a failed call is repeated where that is safe: a read, and a call of which nothing was done. Default 2. */
  retries?: number;
  /** Deadline of calls that have none, in milliseconds; none by default. */
  timeoutMs?: number;
}

type Unary = (request: unknown, options: CallOptions) => Promise<unknown>;
type Stream = (request: unknown, options: CallOptions) => AsyncIterable<unknown>;

/** Return the generated client of a service, with the key and the retries. */
export function calls<S extends DescService>(service: S, transport: Transport, key: string, defaults: Defaults) {
  const client = createClient(service, transport) as Record<string, unknown>;
  for (const method of service.methods) {
    const call = client[method.localName];
    client[method.localName] = method.methodKind === "unary"
      ? (request: unknown, options?: CallOptions) => unary(call as Unary, request, new Call(method, key, defaults, options))
      : (request: unknown, options?: CallOptions) => stream(call as Stream, request, new Call(method, key, defaults, options));
  }
  return client as Client<S>;
}

async function unary(method: Unary, request: unknown, call: Call): Promise<unknown> {
  for (;;) {
    try {
      return await method(request, call.options());
    } catch (error) {
      await call.again(error);
    }
  }
}

async function* stream(method: Stream, request: unknown, call: Call): AsyncGenerator<unknown> {
  try {
    for (;;) {
      try {
        for await (const message of method(request, call.options())) {
          call.left = 0; // half an answer cannot be taken back
          yield message;
        }
        return;
      } catch (error) {
        await call.again(error);
      }
    }
  } finally {
    call.end();
  }
}

/** One call with all its attempts. */
class Call {
  left: number;
  private readonly headers: Headers;
  private readonly deadline: number;
  private readonly stopped = new AbortController();
  private waitMs = 200;

  constructor(private readonly method: DescMethod, key: string, defaults: Defaults, private readonly given: CallOptions = {}) {
    this.left = defaults.retries ?? 2;
    this.deadline = performance.now() + (given.timeoutMs ?? defaults.timeoutMs ?? Infinity);
    this.headers = new Headers(given.headers);
    if (key && !this.headers.has("authorization")) this.headers.set("authorization", `Bearer ${key}`);
    if (!this.headers.has("x-request-id")) this.headers.set("x-request-id", randomId());
  }

  /** Return the options of the next attempt. */
  options(): CallOptions {
    const signal = AbortSignal.any([this.stopped.signal, ...(this.given.signal ? [this.given.signal] : [])]);
    const left = this.deadline === Infinity ? {} : { timeoutMs: Math.max(1, Math.ceil(this.deadline - performance.now())) };
    return { ...this.given, ...left, headers: this.headers, signal };
  }

  /** Wait for the next attempt after an error, or throw it as an UmgError. */
  async again(error: unknown): Promise<void> {
    const failed = new UmgError(ConnectError.from(error), this.headers.get("x-request-id") ?? "");
    const isSafe = failed.notDone || (failed.code === Code.Unavailable && READS.test(this.method.name));
    const waitMs = failed.retryAfter === undefined ? this.waitMs * (0.5 + Math.random()) : failed.retryAfter * 1000;
    const isTooLong = waitMs > MAX_WAIT_MS || performance.now() + waitMs >= this.deadline;
    if (this.left-- <= 0 || !failed.retryable || !isSafe || isTooLong || this.given.signal?.aborted) throw failed;
    this.waitMs *= 2;
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }

  /** Cancel the call if it is still open. */
  end(): void {
    this.stopped.abort();
  }
}

function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
