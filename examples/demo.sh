#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Trains one small network on Fashion-MNIST with four ranks and four codecs, from one
# seed, and shows what each codec costs: accuracy, bytes, time.
#
#     examples/demo.sh [BUILD_DIR]
#
# Everything it writes is in BUILD_DIR/demo. DEMO_RANKS and DEMO_EPOCHS change the run.

set -eu

source_dir=$(dirname "$0")
build=${1:-build}
out=$build/demo
run=${DEMO_RUN:-$build/tools/trib-run}
train=${DEMO_TRAIN:-$build/examples/train}
ranks=${DEMO_RANKS:-4}
epochs=${DEMO_EPOCHS:-3}
codecs='none bf16 topk:ratio=0.01 qsgd:bits=4'

# The ranks are the parallelism: OpenBLAS must not start threads beside them.
export OPENBLAS_NUM_THREADS=1

# The file name for a codec, without its ending.
stem() {
    echo "$out/$1" | sed 's/[:=,]/-/g'
}

train_codec() {
    progress=lines
    if [ -t 2 ] && [ "${TERM:-dumb}" != dumb ]; then
        progress=rewrite
    fi
    if ! "$run" -n "$ranks" --tag none --timeout 300 -- \
        "$train" --codec "$1" --epochs "$epochs" --seed 1 --progress "$progress" \
        --csv "$(stem "$1").csv" --summary "$(stem "$1").txt" >"$(stem "$1").log"; then
        cat "$(stem "$1").log" >&2
        echo "demo: training with codec $1 failed" >&2
        exit 1
    fi
}

# One row for each summary file, the first of which is dense.
print_table() {
    awk -F '\t' -v cores="$(nproc)" '
        function size(bytes) {
            if (bytes < 1e6)
                return sprintf("%.0f kB", bytes / 1e3)
            return sprintf("%.2f MB", bytes / 1e6)
        }
        function row() {
            if (dense == 0) {
                dense = v["bytes_per_step"]
                printf "\nFashion-MNIST, %d parameters, %d steps, %d ranks on %d cores\n\n",
                    v["parameters"], v["steps"], v["ranks"], cores
                printf form, "", "test", "sent per step", "", "time per", "not hidden",
                    "weights on"
                printf form, "codec", "accuracy", "and rank", "dense /", "step",
                    "by compute", "all ranks"
            }
            printf form, v["codec"], sprintf("%.2f %%", v["accuracy_pct"]),
                size(v["bytes_per_step"]),
                sprintf("%.1f", dense / v["bytes_per_step"]),
                sprintf("%.2f ms", v["ms_per_step"]),
                sprintf("%.0f %%", v["not_hidden_pct"]),
                v["identical"] == "yes" ? "identical" : "DIFFERENT"
        }
        BEGIN { form = "%-15s %9s %13s %7s %9s %10s %10s\n" }
        FNR == 1 && NR > 1 { row() }
        { v[$1] = $2 }
        END { row(); print "" }
    ' "$@"
}

draw_picture() {
    if ! command -v gnuplot >/dev/null; then
        echo "No picture: gnuplot is not installed."
        return
    fi
    gnuplot -e "out='$out'; files='$csv_files'; codecs='$codecs'; ranks=$ranks" \
        "$source_dir/demo.gp"
    echo "Picture  $out/accuracy.png"
}

begin=$(date +%s)
mkdir -p "$out"
csv_files=
set --
for codec in $codecs; do
    train_codec "$codec"
    csv_files="$csv_files $(stem "$codec").csv"
    set -- "$@" "$(stem "$codec").txt"
done
print_table "$@"
draw_picture
echo "Figures  $out/*.csv"
echo "Done in $(($(date +%s) - begin)) s."
