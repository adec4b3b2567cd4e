"""Messages and errors of the Connect and gRPC-Web protocols."""
