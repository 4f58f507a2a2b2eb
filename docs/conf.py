"""How the pages are built: `sphinx-build -W docs docs/_build`. No network is needed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from generated_pages import write_all

from bkspark._version import VERSION

project = "bkspark"
copyright = "the bkspark authors"
release = version = VERSION

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # the command line's page begins sections at its own depth
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_typehints = "description"
autodoc_member_order = "bysource"
copybutton_prompt_text = "$ "

html_theme = "furo"
html_title = f"bkspark {VERSION}"
html_static_path = ["_static"]
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"font-stack": "system-ui, sans-serif"},
    "dark_css_variables": {"font-stack": "system-ui, sans-serif"},
}

write_all(Path(__file__).parent)
