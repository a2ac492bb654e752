#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Options that would have no effect in a mode of a program are refused: each option of trib-train in each of its modes.
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
        case "$mode $option" in "fit code" | "fit kind" | "kind code") continue ;; esac # it chooses another mode
        refuses "$mode" "$option" "$value" || taken="$taken --$option"
    done <"$dir/options"
    echo "taken: $taken" >"$said"
    [ -z "$taken" ]
    result $? "trib-train ${words[$mode]}: options without effect are refused"
done
expect "--bind without ranks to place" 2 "ranks that --ranks starts" "$train" logreg --bind core
finish
