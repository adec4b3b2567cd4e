"""Memory of the gateway's process with large answers: answers that are too large, that the caller does not read, and
that the caller reads.

`make memory` measures the full sizes; `test_memory.py` is the short form.
"""
