"""Measures the gateway beside a bare aiohttp pass-through, on the same load, in the same run, and its codecs alone:
`python -m bench`.
"""
