"""Text generation: rules of the families, conversations, the request for each channel, completion of responses."""
