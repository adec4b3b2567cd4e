"""The server: connections and their bytes, before a request has a route."""
