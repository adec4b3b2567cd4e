"""The HTTP face: documented bodies in, `umg.v1` calls out."""
