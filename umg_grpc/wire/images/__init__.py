"""Images: codecs of the faces, and of the protocols of providers."""
