#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tables fit a terminal of 80 columns, or name the option that shows the rest; a pipe and --wide
# have all columns.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
command -v python3 >/dev/null || skip_all "python3 is not installed"
terminal=("${abs_top_srcdir:-.}/tests/harness/terminal.py" --said "$dir/seen")
perf=$build/perf/trib-perf info=$build/tools/trib-info train=$build/train/program/trib-train
shown+=("$dir/seen")

# NAME, required WORDS (or ""), COMMAND…: no line is wider than 80 columns
fits() {
    local name=$1 words=$2 widest
    shift 2
    widest=$(timeout -k 5 $((60 * slow)) "${terminal[@]}" 80 "$@" 2>"$said")
    echo "widest: $widest" >>"$said"
    [ "${widest%% *}" -le 80 ] && { [ -z "$words" ] || grep -qF -- "$words" "$dir/seen"; }
    result $? "$name"
}

# One shell runs several commands, because creating a terminal takes longer than most of them.
# shellcheck disable=SC2016 # that shell expands them
fits "trib-info" "ok    library" sh -c '"$0" --transports --algorithms --codecs --config; "$0" --reach; "$0" doctor' "$info"
fits "trib-perf" "not shown: samples, batch, p99.9, min, max, algbw, wire (--wide shows all)" \
    "$perf" allreduce -n 2 --sizes 64K --iters 3 --codec int8 --check --explain --overlap
grep "size" "$dir/seen" | grep -q "p99 " && grep -qE "^ +64 KiB +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.e-]+ +0$" "$dir/seen"
result $? "its rows have the columns of the heads"
# shellcheck disable=SC2016 # the inner shell expands it
fits "its other commands" "million/s" sh -c '"$0" codec int8 --sizes 4K --iters 1; "$0" codec int8 --classes
    "$0" put --sizes 8 --iters 20 --check; "$0" neighbors -n 2 --sizes 4K --rounds 1
    "$0" agg --jobs 1 --workers 2 --sizes 4K --iters 2 --check' "$perf"
[ "$(grep -c "(--wide shows all)" "$dir/seen")" = 4 ]
result $? "each says that there are more columns"
fits "trib-train" "strategies" "$train" list
sim=$build/perf/sim/trib-sim
# AddressSanitizer warns of SimGrid's stacks on stderr.
# shellcheck disable=SC2016 # the inner shell expands it
[ ! -x "$sim" ] || fits "trib-sim" "--wide shows all" sh -c '"$0" --ranks 4 --bytes 4K 2>/dev/null' "$sim"

timeout -k 5 $((60 * slow)) "${terminal[@]}" 80 "$perf" allreduce -n 2 --sizes 8 --iters 3 --wide >"$said" 2>&1
grep -q "p99.9" "$dir/seen" && ! grep -q "not shown" "$dir/seen"
result $? "--wide has all columns"
expect "and a pipe" 0 "p99.9" "$perf" allreduce -n 2 --sizes 8 --iters 3
! grep -q "not shown" "$said"
result $? "which does not mention it"
finish
