import type { Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";

/** gRPC needs HTTP/2 and Node. The Connect protocol works by HTTP/1.1 and in browsers. */
export type Protocol = "grpc" | "connect";

/** A way to a gateway, and the function that ends its connections. */
export type Connection = { transport: Transport; close: () => void };

/** Connect by gRPC, or by the Connect protocol if it is selected. */
export function open(baseUrl: string, protocol: Protocol = "grpc", nodeOptions: object = {}): Connection {
  const options = { baseUrl, readMaxBytes: 64 * 2 ** 20 };
  if (protocol === "connect")
    return { transport: createConnectTransport({ ...options, httpVersion: "1.1", nodeOptions }), close: () => {} };
  const sessionManager = new Http2SessionManager(baseUrl, undefined, nodeOptions);
  return { transport: createGrpcTransport({ ...options, sessionManager }), close: () => sessionManager.abort() };
}
