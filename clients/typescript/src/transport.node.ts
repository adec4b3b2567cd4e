import { createConnectTransport, createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { type Connection, MAX_ANSWER_BYTES, type Protocol } from "./transport.js";

/** Connect by gRPC, or by the Connect protocol if it is selected. */
export function open(baseUrl: string, protocol: Protocol = "grpc", nodeOptions: object = {}): Connection {
  if (protocol === "connect") {
    const options = { baseUrl, httpVersion: "1.1", readMaxBytes: MAX_ANSWER_BYTES, nodeOptions } as const;
    return { transport: createConnectTransport(options), close: () => {} };
  }
  const sessionManager = new Http2SessionManager(baseUrl, undefined, nodeOptions);
  const transport = createGrpcTransport({ baseUrl, readMaxBytes: MAX_ANSWER_BYTES, sessionManager });
  return { transport, close: () => sessionManager.abort() };
}
