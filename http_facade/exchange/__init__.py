"""One request and its response, independent of the operation: headers, key, body, call of the service, response."""
