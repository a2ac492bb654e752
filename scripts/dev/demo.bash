# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: Train a network on four ranks: dense, DGC, Pipe-SGD with int8, SGP.

cmd_demo() {
    need "${required_packages[@]}" "${demo_packages[@]}"
    build_in build
    build/train/program/trib-train compare mlp dgc pipe-int8 sgp --seeds 1 --epochs 3 \
        --link 1gbit --link 10gbit --out build/demo
    say "pictures: build/demo/bytes-mlp.png, seconds-mlp.png, hidden-mlp.png"
}
