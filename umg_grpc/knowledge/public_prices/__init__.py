"""Conversion of public data about prices into rows: of the package genai-prices, and of the cost map of litellm."""
