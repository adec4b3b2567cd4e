"""Long runs that show faults which no single call shows: ten minutes of load, overload, and callers that leave.

`make soak` runs all of it and judges the figures; `test_soak.py` is the short form, which judges no times.
"""
