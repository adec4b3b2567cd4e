"""gRPC services of the gateway, which call any provider by one protobuf schema, `umg.v1`."""
