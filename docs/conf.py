"""Settings of the documentation: python -m sphinx -W --keep-going -b html docs docs/_build."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import dream  # noqa: E402

project = "dream"
author = "The dream authors"
release = version = dream.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "from_code"]
exclude_patterns = ["_build", "_ext"]
suppress_warnings = [
    "ref.python",  # a name in a docstring that several classes have
]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_use_type_comments = False
autodoc_mock_imports = ["gymnasium", "pettingzoo", "pyspiel", "open_spiel", "huggingface_hub", "matplotlib"]
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_custom_sections = ["Source", "Sources", "Deviation", "Deviations"]

html_theme = "furo"
html_title = "dream"
html_static_path = ["_static"]
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
