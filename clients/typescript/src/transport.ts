import type { Transport } from "@connectrpc/connect";

/** gRPC needs HTTP/2 and Node. The Connect protocol works by HTTP/1.1 and in browsers. */
export type Protocol = "grpc" | "connect";

/** A way to a gateway. `close` ends its connections. */
export interface Connection {
  transport: Transport;
  close(): void;
}

/** Size of the largest message that is received. */
export const MAX_ANSWER_BYTES = 64 * 2 ** 20;
