# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: Build the site of docs/, with all functions and manual pages, into build/docs/html.

cmd_docs() {
    need "${docs_packages[@]}"
    scripts/build-docs build/docs
    say "read it: build/docs/html/index.html"
}
