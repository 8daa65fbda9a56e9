"""The site of these pages: `make docs`. Sphinx reads Markdown through MyST; furo is the theme."""

project = "Sluice"
author = "the Sluice authors"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Sluice"
html_copy_source = False
myst_heading_anchors = 3
exclude_patterns = ["_build"]
# Links to files beside docs/ (the record of measurements, changes) lead somewhere in the repository, which
# tests/test_docs.py checks; on the site they are plain text.
suppress_warnings = ["myst.xref_missing"]
