"""Recording of a terminal for the README: commands with their output, as an SVG whose lines appear one by one."""
