"""Images: rules of the families, delivery of the images in the requested form, streams of drafts."""
