"""Strict fake providers of images, one module for each protocol. Each takes only requests that its provider's own SDK or
reference allows, and repeats the prompt inside its images.
"""
