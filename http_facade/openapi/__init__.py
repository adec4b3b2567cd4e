"""OpenAPI document that describes the HTTP API of the gateway."""
