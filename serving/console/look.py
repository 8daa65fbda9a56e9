"""What the console and the report share: colours, and tables that sort and fit a phone. The console's page with it."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
LOOK, TABLES, PAGE = HERE / "look.css", HERE / "tables.js", HERE / "page.html"


def look() -> str:
    """For a `<style>`."""
    return LOOK.read_text("utf-8")


def tables() -> str:
    """For a `<script>`."""
    return TABLES.read_text("utf-8")


def page() -> str:
    """The console, whole."""
    return PAGE.read_text("utf-8").replace("/* look.css */", look()).replace("/* tables.js */", tables())
