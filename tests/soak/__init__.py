"""What no single call shows: what the gateway does for ten minutes, under too much load, and when callers leave.

`make soak` runs all of it and judges the figures; `test_soak.py` is the short form, which judges no times.
"""
