#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# few_images.sh - to be sourced: create a small data set of images, for slow machines.

# few PART KIND HEAD-BYTES ITEM-BYTES COUNT FOLDER - copy the first items of a file.
few() {
    local from=/usr/share/datasets/fashion-mnist/$1-$2-ubyte.gz

    {
        zcat "$from" | head -c 4
        printf '%b' "\\0\\0\\x$(printf %02x $(($5 / 256)))\\x$(printf %02x $(($5 % 256)))"
        zcat "$from" | tail -c +9 | head -c $(($3 - 8 + $4 * $5))
    } 2>/dev/null | gzip -1 >"$6/$1-$2-ubyte.gz"
}

few_images() { # FOLDER
    mkdir -p "$1"
    [ -e /usr/share/datasets/fashion-mnist ] || return
    few train images-idx3 16 784 768 "$1"
    few train labels-idx1 8 1 768 "$1"
    few t10k images-idx3 16 784 100 "$1"
    few t10k labels-idx1 8 1 100 "$1"
}
