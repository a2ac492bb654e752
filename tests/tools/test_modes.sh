#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Each option of trib-train is rejected in the modes in which it would have no effect.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
train=$build/train/program/trib-train
[ -x "$train" ] || skip_all "built without trib-train"

# Option, a value, and the modes in which it has an effect: fit, code, kind, rows, stragglers.
cat >"$dir/options" <<'END'
strategy sync fit kind
codec int8 fit kind
feedback ef14 fit kind
parts layers fit kind
optimizer sgd fit kind
rate 0.1 fit code kind
batch 4 fit kind rows
epochs 1 fit code kind rows
steps 1 fit code kind rows stragglers
seed 2 fit code kind rows stragglers
seeds 2 fit code kind rows
data /nowhere fit code kind rows stragglers
feed whole fit rows stragglers
code rlnc code
partitions 2 code
kind one kind
replicas 2 kind
ranks 2 fit code kind rows stragglers
bind core fit code kind rows stragglers
transport shm fit code kind rows stragglers
service localhost:1 fit code kind rows stragglers
link 1gbit fit code kind rows
compute-ms 1 fit code kind rows stragglers
straggle 0.1,2 fit code kind rows
leave 1,2 code
join 3 code
slow-rank 1,2 fit code kind rows
until first fit
csv /nowhere/x fit code kind rows
json /nowhere/x fit code kind rows stragglers
curve /nowhere/x fit code kind
record /nowhere/x fit
progress none fit code kind rows stragglers
out /nowhere/x rows stragglers
quick - rows stragglers
END
declare -A words=([fit]=logreg [code]="logreg --code rlnc" [kind]="logreg --kind one" [rows]=compare
    [stragglers]="compare stragglers" [list]=list)

"$train" --help | grep -oE '^ +(-., )?--[a-z-]+' | sed 's/.*--//' | grep -vxE 'help|version|completion' | sort >"$dir/named"
cut -d ' ' -f 1 "$dir/options" | sort | diff - "$dir/named" >"$said"
result $? "trib-train: each option is in the table of this test"

refuses() { # MODE, OPTION, VALUE
    local value=("$3")
    [ "$3" = - ] && value=()
    # shellcheck disable=SC2086 # several words
    timeout 20 "$train" ${words[$1]} "--$2" "${value[@]}" >"$said" 2>&1
    [ $? = 2 ] && grep -q -- "--$2 has no effect in" "$said"
}

for mode in fit code kind rows stragglers list; do
    taken=""
    while read -r option value modes; do
        [[ " $modes " == *" $mode "* ]] && continue
        case "$mode $option" in "fit code" | "fit kind" | "kind code") continue ;; esac # the option selects another mode
        refuses "$mode" "$option" "$value" || taken="$taken --$option"
    done <"$dir/options"
    echo "taken: $taken" >"$said"
    [ -z "$taken" ]
    result $? "trib-train ${words[$mode]}: options without effect are refused"
done
# Other programs with options that depend on each other.
perf=$build/perf/trib-perf
refused() { # WORDS, COMMAND…
    expect "${2##*/} ${*:3}" 2 "$1" "${@:2}"
}
for args in "allreduce --sizes 64" "store" "calibrate"; do
    # shellcheck disable=SC2086 # several words
    refused "--bind places the ranks that -n starts" "$perf" $args --bind core
done
refused "a barrier moves no data" "$perf" barrier -n 2 --input smooth
refused "requires floats, not i32" "$perf" allreduce -n 2 --dtype i32 --input smooth
refused "leave them out" "$perf" groups -n 2 --rule sgd
refused "exclude each other" "$perf" put --latency --bandwidth
refused "leave out --latency" "$perf" put --latency --depth 4
for option in "sizes 4K" "chunk 4K" "threads 2" "iters 5" "input smooth"; do
    # shellcheck disable=SC2086 # several words
    refused "--classes uses" "$perf" codec int8 --classes --$option
done
expect "a folder that is not there" 1 "which does not exist" "$build/tools/trib-info" doctor --folder "$dir/none"
refused "omit one of them" "$build/tools/trib-run" -n 2 --tag none -o "$dir/out" -- true
refused "omit one of them" "$build/tools/trib-run" -n 2 --prefix -o "$dir/out" -- true
for verb in status drain "kick 1" "forget 1"; do
    # shellcheck disable=SC2086 # several words
    refused "--wide has no effect in" "$build/agg/daemon/tribctl" --wide $verb
done
sim=$build/perf/sim/trib-sim
if [ -x "$sim" ]; then
    while read -r option value; do
        refused "--$option has no effect in" "$sim" --choose --ranks 4 "--$option" "$value"
    done <<'END'
algorithm ring
aggregators 2
rack 2
window 4
topology star
oversubscribed 1
crowding 0.1
encode-rate 1
decode-rate 1
cores 2
late 1:1ms
slow 1:2
slow-link 0:2
messages 10
END
    expect "trib-sim: aggregators of a ring" 1 "has no aggregators" "$sim" --aggregators 2 --ranks 4
    expect "trib-sim: leaders of a ring" 1 "has no leaders" "$sim" --leaders 1 --ranks 4
    refused "is not in --ranks" "$sim" --late 9:1ms --ranks 4
    refused "is not in --ranks" "$sim" --slow 4:2 --ranks 2,4
fi
expect "--bind without ranks to place" 2 "ranks that --ranks starts" "$train" logreg --bind core
finish
