"""JSON schemas of the bodies that the faces take and return, for the OpenAPI document. Nothing of a request is checked
by them: the same types are checked by the codecs.
"""
