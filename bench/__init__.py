"""Measures the gateway beside a bare aiohttp pass-through, on the same load, in the same run: `python -m bench`."""
