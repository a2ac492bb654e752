#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# codec.sh - compare codecs with memcpy, PyTorch and NumPy, interleaved.
#
# The vector is the file, repeated to 64 MiB. A round launches each contender once: dram, one thread;
# threads, two threads; cache, one thread with 256 KiB; zeros, the block scan of a vector with 99 %
# zeros; ours, the codecs compared with PyTorch and NumPy; and right after it torch, PyTorch and NumPy
# on the same vector (python3-torch, python3-numpy).
# shellcheck disable=SC2034,SC2154 # the driver sets and reads them
# shellcheck source=/dev/null
. "$(dirname "$0")/driver.sh"
quick "3 rounds, few passes" rounds=3 iters=3
options rounds
option iters 5 N "passes over a vector in a launch"
option input "$here/../tests/data/gradient-late.f32" FILE "float32 to encode"
option only '' LIST "contenders, comma-separated: dram, threads, cache, zeros, ours, torch"
options write
limit=300
take_arguments "$@"
[ -s "$input" ] || die "$input: no such file, or nothing in it"

# Names in the tables; `slow` are in one table only.
codecs=(f16 bf16 f8 natural dither qsgd:bits=4 qsgd:bits=8 terngrad onebit efsign signsgd
    int4 int8 int16 uniform-thc thc topk:ratio=0.01 topk:ratio=0.001 dgc:ratio=0.01
    dgc:ratio=0.001 topk:ratio=0.01+natural threshold:at=0.003 randomk:ratio=0.01 blocks
    adacomp)
slow=("qsgd:bits=4,pack=omega" "qsgd:bits=4,pack=entropy" powersgd gradiveq lgc lgc-ps)
compared=(f16 int8 topk:ratio=0.01 topk:ratio=0.001 dgc:ratio=0.01 dgc:ratio=0.001)
export bytes=$((64 << 20)) few_bytes=$((256 << 10)) zeros=$out/zeros.f32 python=''
contenders=(dram threads cache zeros)
for candidate in python3 /usr/bin/python3; do
    [ -n "$python" ] || ! "$candidate" -c 'import numpy, torch' 2>/dev/null || python=$candidate
done
if [ -n "$python" ]; then
    contenders+=(ours torch)
else
    missing+=("PyTorch and NumPy (packages python3-torch, python3-numpy)")
fi
# 1 % of it is the input, contiguous.
cp "$input" "$zeros"
truncate -s $((100 * $(stat -c %s "$input"))) "$zeros"

columns=contender,name,bytes_per_element,nmse,pass,GBps,ratio # in names a ; stands for a comma, and a ~ for a space
trib() { # CONTENDER INPUT BYTES THREADS ITERS CODEC…
    "$build/perf/trib-perf" codec "${@:6}" --input "$2" --sizes "$3" --threads "$4" --iters "$5" --csv - |
        awk -F, -v label="$1" -v texts="${*:6}" '
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
    dram | ours) trib "$1" "$input" "$bytes" 1 "$iters" "${@:2}" ;;
    threads) trib threads "$input" "$bytes" 2 "$iters" "${@:2}" ;;
    cache) trib cache "$input" "$few_bytes" 1 $((4 * iters)) "${@:2}" ;;
    zeros) trib zeros "$zeros" "$bytes" 1 "$iters" blocks ;;
    torch)
        "$python" "$here/peers/codec_torch.py" "$input" "$bytes" 0.3 |
            awk -F, '{ gsub(/ /, "~", $1); print "torch," $1 ",,,call," $2 "," }'
        ;;
    esac
}
one_round() {
    local who texts
    for who in "${contenders[@]}"; do
        texts=("${codecs[@]}")
        [ "$who" != dram ] || texts+=("${slow[@]}")
        [ "$who" != ours ] || texts=("${compared[@]}")
        contend "$who" "$who" guarded launch "$who" "${texts[@]}"
    done
}
measure
rm -f "$zeros"
about="$(basename "$input"), repeated to 64 MiB, in chunks of 256 KiB; $rounds launches,
interleaved; medians of launches [least-greatest]."
# One thread, encoding and decoding; the time is for the whole vector.
page_rows() {
    awk -F, -v dram="$bytes" -v cache="$few_bytes" 'NR == 1 { print "memory,pass,codec,bytes,bytes_per_element,nmse,us"; next }
        ($4 == "dram" || $4 == "cache") && ($8 == "encode" || $8 == "decode") && $9 > 0 {
            b = $4 == "dram" ? dram : cache; print $4 "," $8 "," $5 "," b "," $6 "," $7 "," b / $9 / 1e3 }' "$runs"
}
finish split_by="memory pass" name=codec own=. key=codec run='"command": "codec"'
