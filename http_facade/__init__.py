"""HTTP face: serves the documented HTTP APIs and calls the `umg.v1` services."""
