#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The demo's program, briefly: it learns, every rank ends with the same weights, a seed
# gives the same weights again, and what cannot work is said once.

# Functions are called through ok.
# shellcheck disable=SC2317

build=${abs_top_builddir:-build}
train=${TRAIN:-$build/examples/train}
run=${RUN:-$build/tools/trib-run}
data=/usr/share/datasets/fashion-mnist
number=0
failed=0

if [ ! -r $data/train-images-idx3-ubyte.gz ]; then
    echo "1..0 # SKIP dataset-fashion-mnist is not installed"
    exit 77
fi
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export OPENBLAS_NUM_THREADS=1

ok() { # NAME COMMAND...: the command's success is the test's
    number=$((number + 1))
    local name=$1
    shift
    if "$@"; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        sed 's/^/# /' "$scratch/log"
        failed=1
    fi
}

ranks() { # N OPTION...
    local n=$1
    shift
    "$run" -n "$n" --tag none --timeout $((100 * ${TRIBTEST_SLOWNESS:-1})) -- \
        "$train" --progress none "$@" >"$scratch/log" 2>&1
}

value() { # FILE NAME
    awk -F '\t' -v name="$2" '$1 == name { print $2 }' "$scratch/$1"
}

above() { # NUMBER LIMIT
    awk -v x="$1" -v limit="$2" 'BEGIN { exit !(x > limit) }'
}

said_once() { # WORDS
    [ "$(grep -c -- "$1" "$scratch/log")" = 1 ]
}

fails() {
    ! "$@"
}

for codec in none bf16 topk:ratio=0.01 qsgd:bits=4; do
    ok "$codec: four ranks train" ranks 4 --codec "$codec" --steps 50 \
        --summary "$scratch/$codec"
    ok "$codec: it learns" above "$(value "$codec" accuracy_pct)" 55
    ok "$codec: all ranks end with the same weights" \
        [ "$(value "$codec" identical)" = yes ]
    ok "$codec: the seed gives the same weights again" ranks 4 --codec "$codec" \
        --steps 50 --summary "$scratch/again"
    ok "$codec: and these are they" \
        [ "$(value "$codec" weights_hash)" = "$(value again weights_hash)" ]
done
ok "another seed" ranks 4 --steps 50 --seed 2 --summary "$scratch/other" \
    --csv "$scratch/csv"
ok "gives other weights" \
    [ "$(value none weights_hash)" != "$(value other weights_hash)" ]
ok "the last line of the CSV file is the last step" \
    [ "$(tail -n 1 "$scratch/csv" | cut -d , -f 1)" = 50 ]
ok "one rank trains alone" ranks 1 --steps 2

ok "a missing folder fails" fails ranks 3 --data "$scratch/none" --steps 1
ok "and is said once, with the cure" said_once "install dataset-fashion-mnist"
ok "a wrong codec fails" fails ranks 3 --codec tpok --steps 1
ok "and is said once" said_once "tpok"
ok "a file that cannot be written fails" fails ranks 3 --steps 1 \
    --csv "$scratch/none/x.csv"
ok "and is said once" said_once "none/x.csv"
echo "1..$number"
exit $failed
