"""Handlers of the routes: each decodes a body, calls the service, and encodes its response."""
