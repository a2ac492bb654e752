#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# codec.sh - compare codecs with memcpy, PyTorch and NumPy, interleaved.
#
#   perf/bench/codec.sh [OPTION]… BUILD_DIR OUT_DIR
#
#   --quick           3 rounds, few passes
#   --rounds N        launches of each program [5]
#   --iters N         passes over a vector in a launch [5]
#   --input FILE      float32 to encode [tests/data/gradient-late.f32]
#   --only LIST       contenders, comma-separated: dram, threads, cache, zeros, beside, torch
#   --write           also write the tables to perf/results/codec.md
#
# The vector is the file, repeated to 64 MiB. A round launches each contender once: dram, one thread;
# threads, two threads; cache, one thread with 256 KiB; zeros, the block scan of a vector with 99 %
# zeros; beside, the codecs compared with PyTorch and NumPy; and right after it torch, PyTorch and NumPy
# on the same vector (python3-torch, python3-numpy). The files in OUT_DIR are runs.csv (all launches), bench.md (tables), errors.log.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

rounds=5 iters=5 input=$here/../tests/data/gradient-late.f32 only='' write=''
limit=300 # seconds for a launch
# shellcheck disable=SC2034 # absent_lines reads it
missing=()

# shellcheck source=perf/bench/driver.sh
. "$here/bench/driver.sh"

# shellcheck disable=SC2034 # take_arguments reads it
declare -A settings=([rounds]=rounds [iters]=iters [input]=input [only]=only)
on_quick() { rounds=3 iters=3; }
on_write() { write=yes; }
take_arguments "$@"
[ -s "$input" ] || die "$input: no such file, or nothing in it"

# Names in the tables.
codecs=(f16 bf16 f8 natural dither qsgd:bits=4 qsgd:bits=8 terngrad onebit efsign signsgd
    int4 int8 int16 uniform-thc thc topk:ratio=0.01 topk:ratio=0.001 dgc:ratio=0.01
    dgc:ratio=0.001 topk:ratio=0.01+natural threshold:at=0.003 randomk:ratio=0.01 blocks
    adacomp)
# In one table only.
slow=("qsgd:bits=4,pack=omega" "qsgd:bits=4,pack=entropy" powersgd gradiveq lgc lgc-ps)
compared=(f16 int8 topk:ratio=0.01 topk:ratio=0.001 dgc:ratio=0.01 dgc:ratio=0.001)
bytes=$((64 << 20))

contenders=(dram threads cache zeros)
python=
for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import numpy, torch' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -n "$python" ]; then
    contenders+=(beside torch)
else
    missing+=("PyTorch and NumPy (packages python3-torch, python3-numpy)")
fi

# 1 % of it is the input, contiguous.
zeros=$out/zeros.f32
cp "$input" "$zeros"
truncate -s $((100 * $(stat -c %s "$input"))) "$zeros"

# --- one launch -------------------------------------------------------------------

# Rows "contender,name,bytes per element,nmse,pass,GB/s,ratio to memcpy"; in names a ; stands
# for a comma, and a ~ for a space.

trib() { # CONTENDER INPUT BYTES THREADS ITERS CODEC…
    local label=$1 input=$2 size=$3 threads=$4 iters=$5
    shift 5
    "$build/perf/trib-perf" codec "$@" --input "$input" --sizes "$size" \
        --threads "$threads" --iters "$iters" --csv - |
        awk -F, -v label="$label" -v texts="$*" '
            BEGIN { split(texts, text, " ") }
            { sub(/^"[^"]*"/, "") } # the full name, which contains commas
            NR == 1 { for (i = 1; i <= NF; i++) { at[$i] = i; name[i] = $i }; next }
            {
                t = text[NR - 1]
                gsub(/,/, ";", t)
                for (i = 1; i <= NF; i++)
                    if (name[i] ~ /_GBps$/ && $i != "")
                        print label "," t "," $at["bytes_per_element"] "," $at["nmse"] "," \
                            substr(name[i], 1, length(name[i]) - 5) "," $i "," $(i + 1)
            }'
}

launch() { # CONTENDER CODEC…
    case $1 in
    dram | beside) trib "$1" "$input" "$bytes" 1 "$iters" "${@:2}" ;;
    threads) trib threads "$input" "$bytes" 2 "$iters" "${@:2}" ;;
    cache) trib cache "$input" $((256 << 10)) 1 $((4 * iters)) "${@:2}" ;;
    zeros) trib zeros "$zeros" "$bytes" 1 "$iters" blocks ;;
    torch)
        "$python" "$here/peers/codec_torch.py" "$input" "$bytes" 0.3 |
            awk -F, '{ gsub(/ /, "~", $1); print "torch," $1 ",,,call," $2 "," }'
        ;;
    esac
}

export build here input bytes iters zeros python
export -f launch trib

# --- rounds, tables ---------------------------------------------------------------

# shellcheck disable=SC2034 # say reads it
planned=$((rounds * ${#contenders[@]}))
echo "round,before,after,contender,name,bytes_per_element,nmse,pass,GBps,ratio" >"$runs"
for ((round = 1; round <= rounds; round++)); do
    for contender in "${contenders[@]}"; do
        texts=("${codecs[@]}")
        [ "$contender" != dram ] || texts+=("${slow[@]}")
        [ "$contender" != beside ] || texts=("${compared[@]}")
        ! wanted "$contender" ||
            launch_probed "$round" "$contender" guarded launch "$contender" "${texts[@]}"
    done
done
rm -f "$zeros"
[ ! -t 2 ] || printf '\r\033[K' >&2

{
    machine_line
    echo "$(basename "$input"), repeated to 64 MiB, in chunks of 256 KiB; $rounds launches,"
    echo "interleaved; medians of launches [least-greatest]."
    absent_lines
    echo
    awk -f "$here/bench/medians.awk" -f "$here/bench/codec.awk" "$runs"
} >"$out/bench.md"
show_tables "$out/bench.md"
echo "written to $out: bench.md, runs.csv, errors.log" >&2

[ -z "$write" ] || write_section codec "$out/bench.md"
# One thread, encoding and decoding; the time is for the whole vector.
awk -F, -v dram="$bytes" -v cache=$((256 << 10)) 'NR == 1 { print "memory,pass,codec,bytes,bytes_per_element,nmse,us"; next }
    ($4 == "dram" || $4 == "cache") && ($8 == "encode" || $8 == "decode") && $9 > 0 {
        b = $4 == "dram" ? dram : cache; print $4 "," $8 "," $5 "," b "," $6 "," $7 "," b / $9 / 1e3 }' "$runs" >"$out/times.csv"
rows=$out/times.csv write_page split_by="memory pass" name=codec own=. key=codec run='"command": "codec"'
rm "$out/times.csv"
