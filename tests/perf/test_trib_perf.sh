#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib-perf as a user runs it: every collective, outputs, and messages for wrong arguments.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=$build/perf/trib-perf

try() { # NAME, expected exit code, required words of the output, arguments
    expect "$1" "$2" "$3" "$perf" "${@:4}"
}

quick=(--iters 3 --warmup 1 --sizes "8,4K,384K")
for coll in allreduce reduce broadcast allgather reduce-scatter gather scatter alltoall scan exscan; do
    for ranks in 1 2 3; do
        try "$coll of $ranks ranks" 0 "384 KiB" \
            "$coll" -n "$ranks" --check "${quick[@]}"
    done
    try "$coll in place" 0 "in place" "$coll" -n 2 --check --in-place "${quick[@]}"
    try "$coll as a plan" 0 "plan" "$coll" -n 2 --check --call plan "${quick[@]}"
done
for ranks in 1 2 3; do
    for call in blocking plan; do
        try "sendrecv of $ranks ranks, $call" 0 "384 KiB" sendrecv -n "$ranks" --check --call "$call" "${quick[@]}"
    done
done
try "sendrecv of u8" 0 "u8" sendrecv -n 3 --check --dtype u8 "${quick[@]}"
try "sendrecv with a codec" 2 "uncompressed messages: leave out --codec" sendrecv -n 2 --codec int8
try "sendrecv in place" 2 "leave out --codec" sendrecv -n 2 --in-place
try "barrier" 0 "barrier" barrier -n 2 --iters 3
for dtype in f64 f16 bf16 f8_e4m3 f8_e5m2 i8 i16 i32 i64 u8 u16 u32 u64 bool; do
    try "allreduce of $dtype" 0 "$dtype" allreduce -n 2 --check --dtype "$dtype" \
        "${quick[@]}"
done
for op in mean min max prod median trimmed-mean:0.3 clipped-mean:0.5; do
    try "allreduce by $op" 0 "${op%%:*}" allreduce -n 2 --check --op "$op" "${quick[@]}"
done
for op in band lxor max mean; do
    try "allreduce of u64 by $op" 0 "$op" allreduce -n 3 --check --op "$op" --dtype u64 "${quick[@]}"
done
for dtype in f32 f64 i32 u64; do
    try "the least pair of $dtype and its index" 0 minloc allreduce -n 3 --check --op minloc --dtype $dtype --sizes 16,4K,1M --iters 3
done
try "the largest, each block at one rank" 0 maxloc reduce-scatter -n 3 --check --op maxloc --sizes 16,4000 --iters 3
try "half a pair" 2 "8 bytes are not a whole number of f64 pairs (16 bytes each)" allreduce -n 2 --op minloc --dtype f64 --sizes 8
try "bits of floats" 1 "op bxor supports integers and bool, dtype is f32" allreduce -n 2 --op bxor "${quick[@]}"
for dtype in f64 f16; do
    try "medians of $dtype by three ranks" 0 "median" allreduce -n 3 --check --dtype $dtype \
        --op median "${quick[@]}"
done
try "a part that is too large" 2 "below 0.5 at each end" allreduce --op trimmed-mean:0.5
try "an operator without a parameter" 2 "has no parameter" allreduce --op sum:2
TRIB_TRANSPORT=none-such expect "a parent that ignores SIGCHLD hides no failure" 1 "none-such" \
    env --ignore-signal=CHLD "$perf" allreduce -n 2 --sizes 4
for memory in malloc register; do
    try "memory of $memory" 0 "memory $memory" allreduce -n 2 --check \
        --memory "$memory" "${quick[@]}"
done
try "another root" 0 "reduce" reduce -n 3 --root 2 --check "${quick[@]}"
try "nothing to send" 0 "0 B" allreduce -n 2 --check --iters 3 --sizes 0
grep -qE '^ +0 B +3 .* 0$' "$said"
result $? "nothing has a row, and is right"

for codec in bf16 f16 bf16:round=random f8 f8:round=random topk:ratio=0.01 qsgd:bits=2 \
    qsgd:bits=8 natural dither dither:base=1.5 natural:round=nearest terngrad onebit efsign \
    topk:ratio=0.01+natural topk:ratio=0.02,result=selected+dither topk:ratio=0.02+f8 \
    qsgd:bits=2,pack=omega terngrad:pack=entropy hadamard+natural:round=nearest; do
    try "allreduce by codec $codec" 0 "codec $codec," allreduce -n 3 --check \
        --codec "$codec" --iters 3 --warmup 1 --sizes 8,4K,64K
done
rows=$("$build/tools/trib-info" --codecs | awk '/^  [a-z]/ { print $1 }')
transports=(shm tcp)
! "$build/tools/trib-info" --transports | grep -q "^  ucx  *UCX [0-9]" || transports+=(ucx)
for transport in "${transports[@]}"; do
    for row in $rows topk:ratio=0.02+int8 qsgd:shared=1 terngrad:shared=1 hadamard+int8 \
        gradiveq:slice=64,kept=8,train=1,coded=9 \
        gradiveq:slice=64,kept=8,train=1,coded=9+int8:bucket=64; do
        case $row in
        lgc | lgc-ps) row=$row:ratio=0.5,dense=0,train=1 ;; # the chunks are small
        esac
        TRIB_TRANSPORT=$transport try "allreduce by codec $row over $transport" 0 "$row" \
            allreduce -n 2 --check --codec "$row" --iters 2 --warmup 1 --sizes 4K,200004
    done
done
for algorithm in ring direct tree halving-doubling; do
    try "allreduce by $algorithm" 0 "algorithm $algorithm," allreduce -n 3 --check \
        --algorithm "$algorithm" "${quick[@]}"
    try "allreduce by $algorithm and a codec" 0 "codec qsgd," allreduce -n 3 --check \
        --algorithm "$algorithm" --codec qsgd --iters 3 --warmup 1 --sizes 8,64K
done
for feedback in none ef14:momentum=0.9 ef14:momentum=0.9,nesterov=1,clip=1 \
    ef14:warmup=4 ef21 ef21:momentum=0.1; do
    try "allreduce with feedback $feedback" 0 "feedback $feedback," allreduce -n 3 \
        --check --codec topk:ratio=0.02 --feedback "$feedback" --iters 3 --warmup 1 \
        --sizes 8,4K,64K
done
try "feedback that this codec does not allow" 2 "ef21 requires a contraction" \
    allreduce -n 2 --codec qsgd --feedback ef21
try "feedback without a codec" 2 "choose one" allreduce -n 2 --feedback ef14
try "a misspelt feedback" 2 "did you mean" allreduce -n 2 --codec topk --feedback ef41
try "a broadcast has no feedback" 2 "sums nothing" broadcast -n 2 --codec topk \
    --feedback ef14
try "a broadcast has no op" 0 "broadcast f32, codec none" broadcast -n 2 --iters 3 \
    --sizes 8
# A tenth of the blocks is sent; where each rank draws its own blocks, sums have more.
for density in 0.01 0.3,same 1; do
    try "pairs, density $density" 0 "pairs, 3 ranks" allreduce -n 3 --check --call pairs \
        --density "$density" --iters 3 --warmup 1 --sizes 0,8,100004
done
try "pairs with a codec" 2 "leave out --codec" allreduce -n 2 --call pairs --codec f16
for density in 0.1,same 0.1; do
    try "sparse inputs, $density" 0 "density 0.1" allreduce -n 3 --check --codec blocks \
        --density "$density" --iters 3 --warmup 1 --sizes 1M
    awk -v least="$([ "$density" = 0.1 ] && echo 3 || echo 7)" '
        /1 MiB/ { seen = 1; if ($(NF - 2) < least || $(NF - 2) > 14) bad = 1 }
        END { exit bad || !seen }' "$said"
    result $? "sparse inputs, $density: they are sent as such"
done
for codec in none topk:ratio=0.05 int8 qsgd thc; do
    try "sparse inputs by codec $codec" 0 "codec $codec," allreduce -n 3 --check --in-place \
        --codec "$codec" --density 0.02,same --iters 3 --warmup 1 --sizes 8,1M
done
# A corrupted byte in a contribution makes the sum wrong on both ranks. In a result it makes the
# ranks' results differ.
for words in "the result of rank 1 is wrong: element" "ranks 0 and 1 have different results: element"; do
    for nth in 3 4 5 6 7 8; do
        TRIB_ZERO_COPY=0 TRIB_TRANSPORT=shm+nomap+corrupt:nth=$nth timeout $((60 * slow)) "$perf" \
            allreduce -n 2 --check --iters 3 --warmup 1 --sizes 256K >"$said" 2>&1
        code=$?
        grep -qF "$words" "$said" && break
    done
    [ "$code" = 1 ] && grep -qF "$words" "$said"
    result $? "a check says what is wrong: $words"
done
for memory in alloc malloc; do
    try "more than any host holds, by $memory" 2 "GiB of memory free" \
        allreduce -n 2 --memory "$memory" --sizes 1000000G
done
try "explain" 0 "chunk" allreduce -n 2 --explain --iters 3 --sizes 64K

TRIB_CODEK=bf16 try "a variable that is no setting" 0 "did you mean TRIB_CODEC?" \
    allreduce -n 2 --iters 3 --sizes 8
[ "$(grep -c TRIB_CODEK "$said")" = 2 ]
result $? "is printed once by each rank"

try "csv on standard output" 0 "allreduce,auto" allreduce -n 2 --csv - "${quick[@]}"
[ "$(wc -l <"$said")" -eq 4 ]
result $? "csv has a header and a row a size, and nothing else"
try "connections are counted" 0 "slots; connected to 2 of 2 peers" \
    allreduce -n 3 --sizes 64K --iters 3
try "json into a file" 0 "memory of rank 0" allreduce -n 2 --json "$dir/out.json" \
    "${quick[@]}"
grep -q '"p50_us"' "$dir/out.json"
result $? "json has results"
[ "$(find "$dir" -name 'out.json*' | wc -l)" -eq 1 ]
result $? "no temporary file is left"

try "a file that cannot be" 2 "cannot write /no/such/place" \
    allreduce -n 2 --csv /no/such/place/x.csv "${quick[@]}"
for option in --json --csv; do
    try "$option: a folder is no file" 2 "cannot write $dir: Is a directory" \
        allreduce -n 2 $option "$dir" "${quick[@]}"
    ! grep -q p50 "$said"
    result $? "$option: nothing is measured for it"
    expect "codec $option: a folder" any "cannot write $dir: Is a directory" \
        "$perf" codec qsgd --sizes 4K $option "$dir"
    ! grep -q qsgd "$said"
    result $? "codec $option: nothing is measured for it"
done
try "a full device" 1 "No space left on device" \
    allreduce -n 2 --json /dev/full "${quick[@]}"
refuse_full "a table onto a full disk" "$perf" allreduce -n 2 "${quick[@]}"
refuse_full "csv onto a full disk" "$perf" allreduce -n 2 --csv - "${quick[@]}"
refuse_full "json onto a full disk" "$perf" allreduce -n 2 --json - "${quick[@]}"
refuse_full "help onto a full disk" "$perf" --help
refuse_full "the version onto a full disk" "$perf" --version
refuse_full "a table that is lost beside a file" "$perf" allreduce -n 2 --json "$dir/kept.json" \
    "${quick[@]}"
grep -q '"p50_us"' "$dir/kept.json"
result $? "the file is there"
for stream in 0 1 2; do
    case $stream in
    0) timeout $((60 * slow)) "$perf" allreduce -n 2 --check "${quick[@]}" <&- >"$said" 2>&1 ;;
    1) timeout $((60 * slow)) "$perf" allreduce -n 2 --check "${quick[@]}" >&- 2>"$said" ;;
    2) TRIB_LOG=debug timeout $((60 * slow)) "$perf" allreduce -n 2 --check "${quick[@]}" \
        2>&- >"$said" ;;
    esac
    result $? "descriptor $stream is closed"
done
limited() { # KiB, words, exit code, arguments: run below ulimit -f, with output through pipes
    local text
    text=$(
        ulimit -f "$1"
        timeout $((60 * slow)) "$perf" "${@:4}" 2>&1
        echo "exit code $?"
    )
    echo "$text" >"$said"
    [[ $text == *"$2"*"exit code $3" ]]
}
starts() { # NAME: succeed if the program starts, else skip NAME
    [ "$slow" = 1 ] || limited 0 "" 0 --version || { skip "$1" "a sanitizer ends its program there" && return 1; }
}
if starts "no file may be made: ulimit -f 0"; then
    limited 0 "raise ulimit -f" 1 allreduce -n 2 "${quick[@]}"
    result $? "no file may be made: ulimit -f 0"
fi
limited 100 "connected to 1 of 1" 0 allreduce -n 2 --check --iters 3 --sizes 8,4M
result $? "ranks below ulimit -f"
limited 4096 "memory of trib_alloc is not shared, so its data is copied" 0 allreduce -n 2 --check --iters 3 --sizes 8,16M
result $? "memory that is larger than ulimit -f is not shared"
limited 100 "raise ulimit -f" 1 put --transport shm --sizes 8
result $? "a transport that needs larger files than ulimit -f"
if [[ " ${transports[*]} " != *" ucx "* ]]; then
    skip "shared memory of UCX" "this build is without ucx"
elif ! unshare --map-root-user --mount true 2>/dev/null; then
    skip "shared memory of UCX" "no name space of mounts can be made"
else
    # shellcheck disable=SC2016 # that shell expands it
    UCX_TLS=sm,tcp,self TRIB_TRANSPORT=ucx expect "UCX with a small /dev/shm" 1 \
        "/dev/shm has less than 64 MiB free" unshare --map-root-user --mount sh -c \
        'mount -t tmpfs -o size=64k none /dev/shm && exec "$0" allreduce -n 2 --sizes 8' "$perf"
    UCX_TLS=sm,tcp,self TRIB_TRANSPORT=ucx limited 100 "raise ulimit -f" 1 allreduce -n 2 --sizes 8
    result $? "UCX with files that are too small"
fi
: >"$dir/large.csv"
if starts "a result that is larger than ulimit -f"; then
    limited 0 "cannot write $dir/large.csv: File too large" 1 codec none --sizes 4K --csv "$dir/large.csv"
    result $? "a result that is larger than ulimit -f"
fi
script -qec "'$perf' barrier -n 2 --iters 1 --warmup 0" /dev/null >"$said" </dev/null
[ "$(nproc)" -lt 2 ] || grep -q "trib-perf: binding each of 2 ranks to .*--bind none" "$said"
result $? "on a terminal it says to which cores ranks are bound"
try "a misspelt option" 2 "did you mean --sizes?" allreduce -n 2 --sises 8
try "a misspelt collective" 2 "did you mean allreduce?" alreduce
try "an option without effect" 2 "leave out --root" allreduce -n 2 --root 1
try "no collective" 2 "no collective: name one"
try "help" 0 "usage: trib-perf" --help
finish
