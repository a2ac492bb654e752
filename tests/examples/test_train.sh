#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The demo's program, briefly: it learns, every rank ends with the same weights, a seed
# gives the same weights again, and what cannot work is said once.

# Functions are called through ok.
# shellcheck disable=SC2317

# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
train=${TRAIN:-$build/examples/train}
run=${RUN:-$build/tools/trib-run}
data=/usr/share/datasets/fashion-mnist

[ -r $data/train-images-idx3-ubyte.gz ] ||
    skip_all "dataset-fashion-mnist is not installed"
export OPENBLAS_NUM_THREADS=1

ok() { # NAME COMMAND...: the command's success is the test's
    "${@:2}"
    result $? "$1"
}

ranks() { # N OPTION...
    local n=$1
    shift
    "$run" -n "$n" --tag none --timeout $((100 * slow)) -- \
        "$train" --progress none "$@" >"$said" 2>&1
}

value() { # FILE NAME
    awk -F '\t' -v name="$2" '$1 == name { print $2 }' "$dir/$1"
}

above() { # NUMBER LIMIT
    awk -v x="$1" -v limit="$2" 'BEGIN { exit !(x > limit) }'
}

said_once() { # WORDS
    [ "$(grep -c -- "$1" "$said")" = 1 ]
}

fails() {
    ! "$@"
}

for codec in none bf16 topk:ratio=0.01 qsgd:bits=4; do
    ok "$codec: four ranks train" ranks 4 --codec "$codec" --steps 50 \
        --summary "$dir/$codec"
    ok "$codec: it learns" above "$(value "$codec" accuracy_pct)" 55
    ok "$codec: all ranks end with the same weights" \
        [ "$(value "$codec" identical)" = yes ]
    ok "$codec: the seed gives the same weights again" ranks 4 --codec "$codec" \
        --steps 50 --summary "$dir/again"
    ok "$codec: and these are they" \
        [ "$(value "$codec" weights_hash)" = "$(value again weights_hash)" ]
done
ok "another seed" ranks 4 --steps 50 --seed 2 --summary "$dir/other" \
    --csv "$dir/csv"
ok "gives other weights" \
    [ "$(value none weights_hash)" != "$(value other weights_hash)" ]
ok "the last line of the CSV file is the last step" \
    [ "$(tail -n 1 "$dir/csv" | cut -d , -f 1)" = 50 ]
ok "gradients are recorded" ranks 4 --steps 3 --record "$dir/record"
bytes=$((4 * (785 * 512 + 513 * 256 + 257 * 10)))
ok "of the steps that are looked at and the last, whole" \
    [ "$(stat -c '%n %s' "$dir"/record/* | sed 's|.*/||' | paste -sd ,)" = \
    "gradient-1.f32 $bytes,gradient-2.f32 $bytes,gradient-3.f32 $bytes" ]
ok "with another codec" ranks 4 --steps 3 --record "$dir/record-topk" --codec topk
ok "the first is the same: it is what a rank computed" \
    cmp "$dir/record/gradient-1.f32" "$dir/record-topk/gradient-1.f32"
ok "later ones are not" fails cmp -s "$dir/record/gradient-3.f32" \
    "$dir/record-topk/gradient-3.f32"
ok "gradients are recorded anew" \
    "${abs_top_srcdir:-.}/scripts/record-gradients" "$build" "$dir/data" 11 >"$said" 2>&1
ok "as large as those of tests/data" [ "$(stat -c %s "$dir/data/gradient-early.f32")" = \
    "$(stat -c %s "${abs_top_srcdir:-.}/tests/data/gradient-early.f32")" ]
ok "and with 11 steps early is late" cmp "$dir/data/gradient-early.f32" \
    "$dir/data/gradient-late.f32"
ok "one rank trains alone" ranks 1 --steps 2

ok "a missing folder fails" fails ranks 3 --data "$dir/none" --steps 1
ok "and is said once, with the cure" said_once "install dataset-fashion-mnist"
ok "a wrong codec fails" fails ranks 3 --codec tpok --steps 1
ok "and is said once" said_once "tpok"
ok "a file that cannot be written fails" fails ranks 3 --steps 1 \
    --csv "$dir/none/x.csv"
ok "and is said once" said_once "none/x.csv"
ok "a folder that cannot be made fails" fails ranks 3 --steps 1 \
    --record "$dir/none/record"
ok "and is said once" said_once "none/record: "
finish
