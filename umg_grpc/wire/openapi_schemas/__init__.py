"""JSON schemas of the bodies of all operations, for the OpenAPI document. Requests are not checked by them, but by the
codecs, with the same types.
"""
