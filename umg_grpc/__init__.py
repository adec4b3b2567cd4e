"""Services of the gateway in gRPC, which make every provider callable by one protobuf schema, `umg.v1`."""
