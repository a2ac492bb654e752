# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
# Internal: build the site as one test of check.

cmd__docs_check() {
    if scripts/build-docs build/docs; then
        echo "ok 1 - the site of docs/, and its links" >build/lint/docs.log
    else
        sed 's/^/# /' build/lint/docs.out >build/lint/docs.log
        echo "not ok 1 - the site of docs/, and its links" >>build/lint/docs.log
    fi
}
