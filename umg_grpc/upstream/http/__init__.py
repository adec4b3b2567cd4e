"""Channels that call providers over HTTP, for text, embeddings, rerankings, images and videos."""
