"""Parts that the codecs of several formats share."""
