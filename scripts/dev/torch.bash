# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: Test every collective of the torch.distributed backend with every element type, operator and
#: shape on 2 to 4 ranks, against torch and Gloo.

cmd_torch() {
    local n folder

    need "${build_packages[@]}" "${test_packages[@]}"
    build_in build
    folder=$(mktemp -d)
    for n in 2 3 4; do
        PYTHONPATH=bindings/python TRIBUTARY_LIBRARY=build/.libs/libtributary.so.0 build/tools/trib-run -n "$n" \
            --timeout 300 -- /usr/bin/python3 tests/bindings/python/collectives.py "$folder/$n"
    done
    rm -rf "$folder"
}
