"""JSON schemas of all operations' bodies for the OpenAPI document, from the types by which the codecs check them."""
