#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A program that was built with the headers of the last release runs with the current library.

cd "${abs_top_srcdir:-$(dirname "$0")/../..}" || exit 1
# shellcheck source=tests/harness/tap.sh
. tests/harness/tap.sh

for ranks in 2 3; do
    for transport in shm tcp; do
        TRIB_TRANSPORT=$transport expect "built with the headers of the last release, $ranks ranks, $transport" 0 '' \
            timeout 60 "$build/tools/trib-run" -n $ranks -- "$build/tests/abi/frozen_program"
    done
done
finish
