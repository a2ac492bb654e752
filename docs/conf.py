# SPDX-License-Identifier: BSD-3-Clause
"""The site, for Sphinx: scripts/build-docs lays its pages out and runs it."""
import json
import pathlib

from docutils import nodes
from sphinx import addnodes

project = "Tributary"
author = "The Tributary authors"
release = pathlib.Path("version.txt").read_text().strip()
version = release
extensions = ["myst_parser"]
myst_heading_anchors = 4
root_doc = "index"
primary_domain = "c"
highlight_language = "none"
add_function_parentheses = False
smartquotes = False  # many of them are of C
pygments_style = "friendly"
pygments_dark_style = "native"

html_theme = "furo"
html_title = f"Tributary {release}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False

# Types of C itself, of its library, and of other libraries.
nitpick_ignore = [("c:identifier", name) for name in (
    "double", "float", "int", "char", "void", "size_t", "int64_t", "uint64_t", "uint32_t", "uint8_t", "pid_t", "sockaddr")]

NAMES = json.loads(pathlib.Path("names.json").read_text())


def link_names(app, doctree):
    """A public function or type that a page names as code is a link to its entry."""
    for literal in list(doctree.findall(nodes.literal)):
        name = literal.astext().removesuffix("()")
        role = NAMES.get(name)
        if not role or isinstance(literal.parent, (nodes.reference, addnodes.pending_xref, nodes.title)):
            continue
        link = addnodes.pending_xref("", refdomain="c", reftype=role, reftarget=name, refdoc=app.env.docname,
                                     refexplicit=True, refwarn=True)
        literal.replace_self(link)
        link += literal


def setup(app):
    app.connect("doctree-read", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
