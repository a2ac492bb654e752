#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Ranks, trib-run and tribd of two releases; one is a copy with a changed release number. Ranks of mixed releases
# reject each other and name both numbers. A job whose tribd is from another release sums without it, with a warning.
# ./dev compat does the same with a release that was built.

cd "${abs_top_srcdir:-$(dirname "$0")/../..}" || exit 1
# shellcheck source=tests/harness/tap.sh
. tests/harness/tap.sh
new=$dir/new old=$dir/old
version=$("$build/tools/trib-info" --version | awk '{ print $2; exit }')
other=9.${version#*.}
if [ ${#other} != ${#version} ] || [ "$other" = "$version" ]; then
    skip_all "release $version has a longer first number"
fi
mkdir "$new" "$old"
[ -e "$build/.libs/libtributary.so.0" ] || skip_all "built without a shared library"
# libtool keeps the programs of the build folder apart from the scripts that start them.
cp "$build/.libs/libtributary.so.0" "$build/tools/.libs/trib-run" "$build/agg/daemon/tribd" "$new/"
for file in libtributary.so.0 trib-run tribd; do
    sed "s/${version//./\\.}\x00\x00\x00\x00/$other\x00\x00\x00\x00/g" "$new/$file" >"$old/$file"
done
chmod +x "$old"/*
program=$build/tests/abi/.libs/mixed_sum
words="Tributary $version.* $other: install the same version"
# shellcheck source=tests/abi/mixed.sh
. tests/abi/mixed.sh

export TRIB_TRANSPORT=shm
port=$((20000 + RANDOM % 12000))
mixed "one release, begun by trib-run of another" sum "" "$old/trib-run" -n 3
words="Tributary \($version\|$other\).*\($version\|$other\): install the same version"
mixed "rank 0 is of another" sentence "0" "$new/trib-run" -n 3
mixed "rank 1 is of another, over TCP" sentence "1" "$new/trib-run" -n 3 --root "127.0.0.1:$port"
with_tribd "tribd is of another" "has Tributary $other, the ranks have $version: install the same" "" "$old/tribd" must
with_tribd "both ranks are of another" "has Tributary $version, the ranks have $other: install the same" "0 1" \
    "$new/tribd" must
finish
