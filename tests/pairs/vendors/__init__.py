"""Strict judges of today's vendors, and the matrix of models, faces and features.

The judges share no fact with the product: they read the request types of the vendors' own SDKs, the flags of a public
cost map, and the refusals that public reports quote.
"""
