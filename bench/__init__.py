"""Benchmark of the gateway against a bare aiohttp pass-through, with the same load in the same run, and of its codecs
alone: `python -m bench`.
"""
