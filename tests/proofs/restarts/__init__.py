"""Restarts of PostgreSQL under mixed calls of two gateways: no call fails while the database is away for a short time.

`make restarts` prints the calls of each kind; `test_restarts.py` is the short form.
"""
