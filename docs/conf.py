"""How the book is built: ``make docs``, warnings are errors."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_ext")]
# The tables are read from the registry of the example project; nothing here connects to a database.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
django.setup()

import better_compute  # noqa: E402

project = "Better Compute for Django"
author = "the Better Compute authors"
project_copyright = author
release = better_compute.__version__
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "public_names",
    "state_diagrams",
    "tables",
]
exclude_patterns = ["_build", "_ext"]
nitpicky = True
# What annotations name but no page of ours documents: other projects' types, and our own private ones.
nitpick_ignore_regex = [
    (
        r"py:.*",
        r"(django|rest_framework|msgspec|celery|psycopg|argparse|collections|contextlib|datetime|enum|http"
        r"|logging|typing|abc|builtins|uuid)(\..*)?",
    ),
    (r"py:.*", r"(?!better_compute)[A-Za-z_.]+"),
    (r"py:.*", r"better_compute\.(admin|contract|envelope|engine|store|registry|conf|facade|testing|hosting)\..*"),
]
suppress_warnings: list[str] = []

html_theme = "furo"
html_title = project
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False

myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline", "attrs_block"]
myst_heading_anchors = 4

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
