"""JSON schemas of all operations' bodies for the OpenAPI document, made from the types that the codecs decode with."""
