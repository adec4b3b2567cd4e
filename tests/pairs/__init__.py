"""Faces and providers: the result of each face with each provider's format, its dialects, faults and relays."""
