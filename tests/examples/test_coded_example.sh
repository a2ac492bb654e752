#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/coded: a rank that is slow now and then is waited for without a code alone.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

[ -x "$build/examples/coded" ] || skip_all "this build is without ISA-L"
for code in rlnc none; do
    timeout $((60 * slow)) "$build/tools/trib-run" -n 6 -- "$build/examples/coded" \
        "$code" >"$said" 2>&1
    grep -q "loss 0.083, bias 0.027" "$said"
    result $? "six ranks learn the same by code $code"
done
finish
