// Calls of the contract by the Connect protocol: JSON for one response, JSON in envelopes for a stream of them.

import { headers } from "../gateway.js";

const ENVELOPE_BYTES = 5;
const END_FLAG = 2;

/** A call that failed: the gateway's words, and the reason, metadata and request id that it states. */
export class CallError extends Error {
  /**
   * @param {string} message
   * @param {{reason?: string, metadata?: Record<string, string>, requestId?: string, retrySeconds?: number}} [facts]
   */
  constructor(message, { reason = "", metadata = {}, requestId = "", retrySeconds } = {}) {
    super(message);
    this.reason = reason;
    this.metadata = metadata;
    this.requestId = requestId;
    this.retrySeconds = retrySeconds;
  }
}

/**
 * Head of a response: the id of the call, and the fields that the provider could not be sent.
 * @typedef {{requestId: string, dropped: string[]}} Head
 */

/**
 * Return the response to a call with one response, and its head. Throw CallError for a call that fails.
 * @param {string} method
 * @param {object} message
 * @param {AbortSignal} [signal]
 * @returns {Promise<{response: any, head: Head}>} the message of the response
 */
export async function unary(method, message, signal) {
  const response = await post(method, "application/json", JSON.stringify(message), signal);
  return { response: await response.json(), head: headOf(response) };
}

/**
 * Yield the responses of a call with a stream of them. Throw CallError for a call that fails.
 * @param {string} method
 * @param {object} message
 * @param {AbortSignal} [signal]
 * @param {(head: Head) => void} [begun] called with the head of the response before its first message
 * @returns {AsyncGenerator<any>} the messages of the response
 */
export async function* stream(method, message, signal, begun) {
  const body = new TextEncoder().encode(JSON.stringify(message));
  const request = new Uint8Array(ENVELOPE_BYTES + body.length);
  new DataView(request.buffer).setUint32(1, body.length);
  request.set(body, ENVELOPE_BYTES);
  const response = await post(method, "application/connect+json", request, signal);
  const head = headOf(response);
  begun?.(head);
  for await (const [flags, text] of envelopes(response)) {
    const received = JSON.parse(text);
    if (!(flags & END_FLAG)) {
      yield received;
      continue;
    }
    if (received.error) throw failure(received.error, head.requestId);
    return;
  }
  throw new CallError("the response ended before its end was sent", { reason: "CUT", requestId: head.requestId });
}

/**
 * @param {string} method
 * @param {string} type
 * @param {BodyInit} body
 * @param {AbortSignal} [signal]
 */
async function post(method, type, body, signal) {
  const response = await fetch(`/umg.v1.${method}`, {
    method: "POST", body, signal: signal ?? null, headers: headers({ "content-type": type }),
  }).catch((error) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new CallError(String(error), { reason: navigator.onLine ? "UNREACHABLE" : "OFFLINE" });
  });
  if (response.ok) return response;
  const requestId = headOf(response).requestId;
  const retrySeconds = Number(response.headers.get("retry-after")) || undefined;
  const status = `the gateway responded with status ${response.status}`;
  const failed = await response.json().catch(() => ({})); // a proxy's own page, for example
  throw failed.code
    ? failure(failed, requestId, retrySeconds)
    : new CallError(failed.error?.message ?? failed.message ?? status, without({ requestId, retrySeconds }));
}

/** @param {{requestId: string, retrySeconds: number | undefined}} facts */
function without({ requestId, retrySeconds }) {
  return retrySeconds === undefined ? { requestId } : { requestId, retrySeconds };
}

/**
 * @param {Response} response
 * @returns {Head}
 */
function headOf({ headers: received }) {
  const dropped = received.get("x-umg-dropped") ?? "";
  return { requestId: received.get("x-request-id") ?? "", dropped: dropped.split(",").map((name) => name.trim()).filter(Boolean) };
}

/**
 * Yield the flags and the text of each envelope.
 * @param {Response} response
 * @returns {AsyncGenerator<[number, string]>}
 */
async function* envelopes(response) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  let rest = new Uint8Array(0);
  try {
    for (;;) {
      const { value, done } = await reader.read().catch((error) => {
        if (error instanceof DOMException && error.name === "AbortError") throw error;
        throw new CallError(String(error), { reason: "CUT", requestId: headOf(response).requestId });
      });
      if (done) return;
      const joined = new Uint8Array(rest.length + value.length);
      joined.set(rest);
      joined.set(value, rest.length);
      rest = joined;
      while (rest.length >= ENVELOPE_BYTES) {
        const end = ENVELOPE_BYTES + new DataView(rest.buffer, rest.byteOffset).getUint32(1);
        if (rest.length < end) break;
        yield [rest[0] ?? 0, new TextDecoder().decode(rest.subarray(ENVELOPE_BYTES, end))];
        rest = rest.subarray(end);
      }
    }
  } finally {
    await reader.cancel().catch(() => {}); // the caller left the loop, or the connection is broken already
  }
}

/**
 * Return the error of the JSON of a failed call, with what its details state.
 * @param {{message?: string, details?: {type: string, value: string}[]}} failed
 * @param {string} requestId
 * @param {number} [retrySeconds]
 */
function failure({ message = "", details = [] }, requestId, retrySeconds) {
  /** @type {{reason: string, metadata: Record<string, string>, requestId: string, retrySeconds?: number}} */
  const facts = { reason: "", metadata: {}, requestId };
  if (retrySeconds !== undefined) facts.retrySeconds = retrySeconds;
  for (const { type, value } of details) {
    const fields = [...protobufFields(bytesOf(value))];
    if (type === "google.rpc.ErrorInfo") {
      for (const [number, field] of fields) {
        if (number === 1) facts.reason = utf8(field);
        if (number !== 3) continue;
        const entry = new Map([...protobufFields(field)].map(([place, text]) => [place, utf8(text)]));
        facts.metadata[entry.get(1) ?? ""] = entry.get(2) ?? "";
      }
    } else if (type === "google.rpc.RetryInfo") {
      facts.retrySeconds = Number(facts.metadata["retry_after_seconds"]) || facts.retrySeconds || 1;
    }
  }
  return new CallError(message, facts);
}

/** @param {Uint8Array} bytes */
const utf8 = (bytes) => new TextDecoder().decode(bytes);

/**
 * Return the bytes of a text in base64.
 * @param {string} text
 */
export function bytesOf(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/**
 * Yield the number and the bytes of each field of a protobuf message that has texts and messages only.
 * @param {Uint8Array} bytes
 * @returns {Generator<[number, Uint8Array]>}
 */
function* protobufFields(bytes) {
  let at = 0;
  const varint = () => {
    let [value, scale, byte] = [0, 1, 0x80];
    while (byte & 0x80 && at < bytes.length) {
      byte = bytes[at++] ?? 0;
      value += (byte & 0x7f) * scale;
      scale *= 0x80;
    }
    return value;
  };
  while (at < bytes.length) {
    const tag = varint();
    const length = varint();
    if ((tag & 7) !== 2) continue; // a number, which was read as the length
    yield [Math.floor(tag / 8), bytes.subarray(at, at + length)];
    at += length;
  }
}
