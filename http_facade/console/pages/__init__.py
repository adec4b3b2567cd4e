"""Modules of the console's pages: each loads the content of its template, and performs the acts of its forms."""
