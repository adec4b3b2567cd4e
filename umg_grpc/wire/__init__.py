"""Wire formats, as pure codecs: each is one row of `FORMATS`."""
