import { createConnectTransport } from "@connectrpc/connect-web";
import type { Connection, Protocol } from "./transport.node.js";

/** Connect by the Connect protocol, the only one that browsers can call. */
export function open(baseUrl: string, protocol: Protocol = "connect"): Connection {
  if (protocol === "grpc") throw new TypeError('browsers cannot call gRPC: set protocol to "connect", or leave it out');
  return { transport: createConnectTransport({ baseUrl, useBinaryFormat: true }), close: () => {} };
}
