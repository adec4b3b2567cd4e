"""OpenAPI document of the HTTP face."""
