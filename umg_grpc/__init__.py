"""The gateway's service: one gRPC schema in front of every provider."""
