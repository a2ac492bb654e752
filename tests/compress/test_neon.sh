#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Compare the kernels for AArch64 with the reference, like the kernels of this CPU, on any CPU: a
# cross compiler builds them and qemu-user runs them.

. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

cc=aarch64-linux-gnu-gcc
for program in $cc qemu-aarch64; do
    command -v "$program" >/dev/null || skip_all "$program is not installed"
done
cd "${abs_top_srcdir:-.}" || exit 1
expect_seconds=300

flags=(-std=gnu11 -D_GNU_SOURCE -O1 -ffp-contract=off -fno-math-errno -Wall -Wextra -Werror
    -I. -Iinclude)
objects=()
$cc "${flags[@]}" -Itests/compress/cross -c -o "$dir/main.o" tests/harness/main.c
ar cr "$dir/main.a" "$dir/main.o" # for tests without a main
for source in compress/kernels/kernels.c compress/kernels/kernels_c.c compress/kernels/kernels_neon.c base/cpu.c \
    base/types.c compress/transform/hadamard.c compress/quantise/thc_table.c tests/harness/cases.c; do
    object=$dir/$(basename "$source" .c).o
    $cc "${flags[@]}" -Itests/compress/cross -c -o "$object" "$source" >"$said" 2>&1
    result $? "$source is made for AArch64"
    objects+=("$object")
done
for source in kernels/{check_kernels,check_narrow,check_select_kernels,test_crc,test_elements,test_gemm} \
    transform/test_hadamard quantise/test_thc_table; do
    test=${source#*/}
    $cc "${flags[@]}" -Itests/compress/cross -static -o "$dir/$test" "tests/compress/$source.c" \
        "${objects[@]}" "$dir/main.a" -lm >"$said" 2>&1
    result $? "$test is made for AArch64"
    expect "$test passes there" 0 "all of them pass" qemu-aarch64 "$dir/$test"
done
finish
