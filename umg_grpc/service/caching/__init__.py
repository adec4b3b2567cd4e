"""Cached responses, and affinity to providers' prompt caches."""
