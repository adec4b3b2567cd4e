"""Test callers of the four text formats: over plain HTTP, with the official SDKs, and over gRPC."""
