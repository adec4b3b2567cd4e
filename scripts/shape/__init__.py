"""Shape of the code, measured by its imports and definitions: `make shape` holds each measure to its limit."""
