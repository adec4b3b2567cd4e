"""Console: the pages of operators below `/console`, drawn on the server from calls of the administrative services.

A request takes one way: `console_handlers` finds the page in `page_table` and the person's session, a module of `pages`
turns the query of the address into calls and their responses into a frozen dataclass, and a template of `templates`
shows it. No page computes in a template, and none reads the database.
"""
