"""Reference pages of the documentation, generated from the definitions of the program: `make docs` writes them.

Each module has the definitions of one kind as data, for the tests, and `page`, the Markdown of them.
"""
