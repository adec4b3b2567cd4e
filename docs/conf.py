"""Configuration of Sphinx for `make docs`; its input is the folder that `scripts/docs_site.py` writes."""

from pathlib import Path

project = "Unified Model Gateway"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
myst_heading_anchors = 4  # the anchors of GitHub
html_theme = "furo"  # with its own scripts and the fonts of the system: nothing is loaded from another host
html_title = project
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_search_scorer = str(Path(__file__).with_name("search_scorer.js"))
html_show_sphinx = False
html_copy_source = False
suppress_warnings = ["misc.highlighting_failure"]  # examples of JSON with `...` in them
