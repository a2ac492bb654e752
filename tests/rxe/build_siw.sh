#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# build_siw.sh FOLDER - build FOLDER/siw.ko, the kernel's iWARP device in software, for
# the kernel of tests/rxe/guest. Debian's kernel lacks it, so it is built from the package
# linux-source. Exit status 77, with the reason: a package is missing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=$("$here/guest" --check)
headers=/lib/modules/$version/build
base=${version%%-*}
source=/usr/src/linux-source-${base%.*}.tar.xz
for needed in "$headers/Makefile" "$source"; do
    [ -r "$needed" ] || {
        echo "no $needed: install linux-headers-$version and linux-source-${base%.*}"
        exit 77
    }
done
siw=drivers/infiniband/sw/siw
mkdir -p "$1"
tar -xf "$source" -C "$1" --strip-components=5 --wildcards "*/$siw/*"
make -C "$headers" -s M="$(cd "$1" && pwd)" CONFIG_RDMA_SIW=m modules
