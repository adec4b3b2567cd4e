"""HTTP server of the gateway: decodes requests of the supported HTTP APIs and calls the gRPC services of `umg.v1`."""
