#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Examples that run alone or over each transport, and their output.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

launch() { # RANKS and options of trib-run, EXAMPLE, its arguments
    # shellcheck disable=SC2086 # several words
    timeout $((60 * slow)) "$build/tools/trib-run" -n $1 -- "$build/examples/$2" "${@:3}"
}

run() { # as launch; sets example and code
    example=$2
    launch "$@" >"$said" 2>&1
    code=$?
}

# NAME, exit code (any: not 0), then COUNT (any: at least one) and PATTERN of output lines
prints() {
    local name=$1 good=0 i got
    [ "$2" = "$code" ] || { [ "$2" = any ] && [ "$code" != 0 ]; } || good=1
    for ((i = 3; i < $#; i += 2)); do
        got=$(grep -c -- "${@:i+1:1}" "$said")
        [ "$got" = "${!i}" ] || { [ "${!i}" = any ] && [ "$got" -gt 0 ]; } || good=1
    done
    result $good "${TRIB_TRANSPORT:+$TRIB_TRANSPORT: }$example: $name"
}

prints_words() { # NAME, the whole output as words, in the order of ranks
    [ "$(sort "$said" | tr -s ' \n' ' ')" = "$2 " ]
    result $? "${TRIB_TRANSPORT:+$TRIB_TRANSPORT: }$example: $1"
}

run 3 transpose
prints_words "a matrix is transposed" "[0] 0 10 20 [1] 1 11 21 [2] 2 12 22"
run 4 ragged
prints_words "items of each rank are collected" "[0] 100 201 202"
if [ -x "$build/examples/coded" ]; then
    for name in rlnc none; do
        run 6 coded $name
        prints "six ranks learn the same by code $name" $code any "loss 0.083, bias 0.027"
    done
else
    skip "coded: six ranks learn the same" "this build is without ISA-L"
fi

for transport in shm tcp; do
    export TRIB_TRANSPORT=$transport
    run 4 gossip
    prints "the mean of four ranks" 0 4 'mean 1.5$'
    run 4 gossip_late # ranks of different speed
    prints "the mean of four ranks, with late parts" 0 4 'mean 1.500000$'
    run 3 overlap
    prints "each sum is right" 0 any "sums 3 6 9 12"
    run 4 same
    prints "rank 2 is named" $code any "rank 2 differs" any "all are the same"
    run 4 abort_all
    prints "all ranks get the error and continue" 0 4 'rank 2 .*has called trib_comm_abort: the loss is NaN' \
        4 'of 4 continues'
    # 3 * 2^62, which is unsigned; (1 + 2 + 4) / 3 = 2.33, nearest 2.25
    run 3 elements
    prints "each kind of element is right" 0 any \
        "overflow 1, layers 0x7, samples 13835058055282163712, gradient 0x41"
    run 3 epoll
    prints "all ranks do well" 0
    prints "both sums are right" 0 3 "plan 0: sum 3$" 3 "plan 1: sum 6$"
    run 3 rebucket
    prints "all ranks do well" 0
    prints "each rank has the sum of what all held back" 0 3 "held back 1, then summed 3$"
    run 3 team # four threads of each rank
    prints "all ranks do well" 0
    prints "the sums are right" 0 3 "thread 3: sum 9$" 3 "thread 1: sum 3$"
    for ranks in 1 4; do
        run $ranks pass_on
        prints "$ranks ranks" 0 $ranks "round, sum $((ranks * (ranks - 1) / 2))\$"
    done
    run 3 sparse
    prints_words "the union of three ranks" "[0] 500000: 2 [0] 500001: 2 [0] 500002: 2 [0] 7: 12"
    # SIGKILL kills rank 0.
    run "4 --grace 50" lost_rank
    prints "three ranks continue" 137 3 'of 3 has done 20 steps' any 'rank 0 .*is lost'
    run "4 --grace 50" rewind
    prints "and so do their plans" 137 3 'of 3: 20 steps'
    run 3 grouped
    prints "runs" 0
    prints "means" 0 any "means: 3 to 6" # step 3, ranks 0, 1 and 2, plus the number of the tensor
    run 3 grouped_loop
    prints "in an event loop" 0 any "sums: 18 and 18"
    export TRIB_CHECK=sum TRIB_STATS=1
    run 3 checked
    prints "nothing is damaged" 0
    # 100000 elements, 20000 of each of 0, 1, 2, 3, 4, times 3 ranks and the step
    prints "statistics" 0 any "step 4: norm 11619, mean norm 6971.37, largest 60, 20000 zeros, 0 NaN"
    unset TRIB_CHECK TRIB_STATS
done

export TRIB_TRANSPORT='tcp+corrupt:nth=7,least=4096'
TRIB_CHECK=sum run 3 checked
prints "a damaged chunk is named" any any "sent chunk [0-9]*, damaged in transit"
TRIB_CHECK=none run 3 checked
prints "without the check no rank gets an error" 0 0 "damaged"
unset TRIB_TRANSPORT

# SIGINT to one rank ends the wait of all ranks, and all report its number.
example=interrupt
launch 3 interrupt >"$said" 2>&1 &
# shellcheck disable=SC2317 # within calls it
all_wait() { [ "$(grep -c waits "$said")" = 3 ]; }
within 10 all_wait
pid=$(sed -n 's/^\[0\] process \([0-9]*\) waits/\1/p' "$said")
[ -n "$pid" ] && kill -INT "$pid"
code=$?
prints "rank 0 waits" 0
wait $!
prints "all ranks say that rank 0 has given up" $code 3 "rank 0 .*process $pid.* has given up in barrier .* returned 2"

# One of five ranks sends poisoned data. Robust operations such as the median converge; the mean
# does not.
off_by() { # OP: print the error of the weights
    launch 5 robust "$1" 2>&1 | tee "$said" | sed -n 's/.* are off by \([^;]*\);.*/\1/p'
}
for op in median trimmed-mean clipped-mean; do
    off=$(off_by $op)
    awk -v off="${off:-1}" 'BEGIN { exit !(off < 0.35) }'
    result $? "robust: $op: off by $off"
done
off=$(off_by mean)
awk -v off="${off:-0}" 'BEGIN { exit off >= 0 && off < 1 }'
result $? "robust: mean: off by $off"

# Ranks that connect without a launcher.
meet() { # EXAMPLE, its arguments before rank and size
    local rank jobs=()
    example=$1 code=0
    rm -rf "$dir/place"
    for rank in 0 1 2; do
        timeout $((60 * slow)) "$build/examples/$1" "${@:2}" $rank 3 &
        jobs+=($!)
    done >"$said" 2>&1
    for rank in 0 1 2; do wait "${jobs[rank]}" || code=1; done
}
for transport in shm tcp; do
    rm -rf "$dir/files" && mkdir "$dir/files"
    TRIB_TRANSPORT=$transport meet store "$dir/files"
    prints "$transport: all ranks do well" 0
    prints "$transport: the sum is right" 0 3 "of 3: sum 3$"
done
first=$((12000 + $$ % 20000))
for place in ":$first-$((first + 20))" "127.0.0.1:$first-$((first + 20))" localhost; do
    meet firewall "$dir/place" "$place"
    prints "$place: all ranks do well" 0
    prints "$place: they are three" 0 3 "^rank [012] of 3$"
done
"$build/examples/firewall" "$dir/place" "192.0.2.1:$first" 0 1 >"$said" 2>&1
code=$?
prints "an address of another host is refused" 1 any "192.0.2.1 is no address of"

# SIGKILL kills rank 0, the others shrink, and a newcomer takes its place.
for transport in shm tcp; do
    export TRIB_TRANSPORT=$transport
    rm -f "$dir/place"
    launch "3 --grace 50" replacement "$dir/place" >"$said" 2>&1 &
    job=$!
    within 10 test -s "$dir/place"
    timeout $((60 * slow)) "$build/examples/replacement" "$dir/place" join >"$dir/joined" 2>&1
    joined=$?
    wait $job
    code=$? example=replacement
    cat "$dir/joined" >>"$said"
    [ $joined = 0 ] && grep -q 'rank 2 of 3' "$dir/joined" || code="newcomer $joined"
    prints "a newcomer takes the place of the lost rank" 137 3 'rank [012] of 3'
done
finish
