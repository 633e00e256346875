"""Sphinx settings of the site: `make site` builds it into build/site."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

from partita import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Partita"
author = "The Partita developers"
copyright = "the Partita developers, MIT licence"
version = release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
extensions += ["commands", "docstrings"]  # ours, in _ext

# Files named .nb.py are pages: notebooks in Jupytext's percent format. They are run on each build,
# and one that raises an error fails it. (The suffix is not .py: links to examples would be taken
# for links to pages.)
nb_custom_formats = {".nb.py": ["jupytext.reads", {"fmt": "py:percent"}]}
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True
exclude_patterns = ["_ext"]

# Pages are read on code hosts too, so they use plain Markdown: links to `page.md#heading`.
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

# The reference needs neither Optuna nor Ray: their base classes are stood in for.
autodoc_mock_imports = ["optuna", "ray"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
# Names of types as the code has them, not what they stand for.
_TYPES = ["BoolArray", "Callback", "Catch", "FloatArray", "Function", "IntArray", "StudyLike"]
autodoc_type_aliases = {"npt.ArrayLike": "ArrayLike"} | {name: name for name in _TYPES}
autodoc_default_options = {"members": True, "show-inheritance": True}
python_maximum_signature_line_length = 88
napoleon_google_docstring = False
napoleon_use_rtype = False
# A list of names, without links: `lower` is an attribute of several classes.
napoleon_custom_sections = [("Attributes", "params_style")]
# `name` in a docstring is a link where it names something public, and code elsewhere.
default_role = "py:obj"

html_theme = "furo"
html_title = f"Partita {release}"
html_static_path: list[str] = []
html_copy_source = False
html_show_sphinx = False
# Only system fonts, no scripts from elsewhere: the site works without internet.
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0060A0", "color-brand-content": "#0060A0"},
    "dark_css_variables": {"color-brand-primary": "#6CB8F0", "color-brand-content": "#6CB8F0"},
}


def setup(app: Sphinx) -> None:
    """Point links between the pages that live outside docs/ to where the site has them."""

    def relink(app: Sphinx, path: Path, docname: str, content: list[str]) -> None:
        content[0] = content[0].replace("](CHANGELOG.md)", "](docs/changelog.md)")

    app.connect("include-read", relink)
