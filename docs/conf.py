"""The site of these pages: `make docs`. Sphinx reads Markdown through MyST; furo is the theme.

Why Sphinx: the pages are plain Markdown that GitHub shows as it is, so that a generator is needed for nothing but
navigation and search. Sphinx has been kept by a community since 2008, builds without Node or a network, fails on a
warning (-W), and checks links between pages. MkDocs with Material would do as well, but Material has been in
maintenance since November 2025 and its successor is young.
"""

project = "Sluice"
author = "the Sluice authors"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Sluice"
html_copy_source = False
myst_heading_anchors = 3
exclude_patterns = ["_build"]
# Links to files beside docs/ (the record of measurements, changes) lead somewhere in the repository; on the site they
# are plain text. tests/test_docs.py checks them, and every anchor.
suppress_warnings = ["myst.xref_missing"]
