"""Code that the codecs of several wire formats share: JSON, server-sent events, media, reasoning state, tool names."""
