#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/replicator: each program converges in every kind. With shares it has the same bits in
# all synchronous kinds.
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
start_daemon one || finish
programs=$build/examples/replicator
export TRIB_TRANSPORT=shm

alone() { # PROGRAM KIND
    timeout $((60 * slow)) "$programs/$1" "$2" >"$said" 2>&1
}

started() { # RANKS PROGRAM KIND
    timeout $((60 * slow)) "$build/tools/trib-run" -n "$1" -- "$programs/$2" "$3" >"$said" 2>&1
}

learns() { # PROGRAM: check that its output shows the expected accuracy
    awk -v program="$1" '
        { sub(/^\[0\] /, "") }
        program == "classifier" && $1 == "accuracy" && $2 > 80 { good = 1 }
        program == "gan" && $1 == "mean" && $2 > 2.6 && $2 < 3.4 && $4 > 0.3 && $4 < 0.8 { good = 1 }
        program == "agent" && $1 == "balanced" && $3 > 60 { good = 1 }
        END { exit !good }' "$said"
}

word() { # NAME: print the value after it
    sed -n "s/.*$1 \([0-9a-f.]*\).*/\1/p" "$said"
}

for program in classifier gan agent; do
    alone $program one:shares=12 && learns $program
    result $? "$program one:shares=12: learns"
    hash=$(word hash)
    for kind in threads:4,shares=12 threads:3,shares=12,input=single; do
        alone $program $kind && [ "$(word hash)" = "$hash" ]
        result $? "$program $kind: the same bits"
    done
    started 2 $program workers:threads=2,shares=12 && [ "$(word hash)" = "$hash" ]
    result $? "$program workers:threads=2,shares=12: the same bits"
    for kind in ps hybrid; do
        # Updates that a busy host delays by hundreds of steps can end the agent's learning.
        [ $program$kind != agentps ] || bound=:staleness=2
        service one started 4 $program "$kind${bound:-}" && learns $program
        result $? "$program $kind: learns"
        bound=
    done
done
alone classifier one
norm=$(word norm)
started 4 classifier workers:devices=2 && learns classifier &&
    awk -v a="$norm" -v b="$(word norm)" 'BEGIN { exit !(a > 1 && a - b < 1e-4 && b - a < 1e-4) }'
result $? "classifier workers:devices=2: half of the hidden units on each device"
! started 3 classifier workers:devices=2 &&
    grep -q '3 ranks cannot be divided into replicas of 2 devices' "$said"
result $? "three ranks are no replicas of two devices"
# Also run the tasks of trib-train.
if [ -r /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz ]; then
    for kind in ps hybrid:groups=2; do
        service one timeout $((60 * slow)) "$build/train/program/trib-train" logreg \
            --kind $kind --replicas 4 --batch 32 --steps 400 --csv "$dir/csv" >"$said" 2>&1 &&
            awk -F , 'END { exit !($5 > 60 && $6 == 4) }' "$dir/csv"
        result $? "trib-train logreg, $kind: learns"
    done
fi
finish
