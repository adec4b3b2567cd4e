"""Parts of the web pages that are generated or checked: types of their scripts, files of others, fields of models."""
