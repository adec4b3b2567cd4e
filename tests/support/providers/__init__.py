"""Fake providers: strict ones of the text formats, raw connections, and providers of images and videos."""
