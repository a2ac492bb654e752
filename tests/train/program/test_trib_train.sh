#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Short runs of trib-train on few images: each strategy converges, a seed reproduces the model,
# files have the documented content, and each error is reported once.

# Functions are called through ok.
# shellcheck disable=SC2317

# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
# shellcheck source=tests/harness/few_images.sh
. "${abs_top_srcdir:-.}/tests/harness/few_images.sh"
train=${TRAIN:-$build/train/program/trib-train}
run=${RUN:-$build/tools/trib-run}
source=${abs_top_srcdir:-.}

[ -r /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz ] ||
    skip_all "dataset-fashion-mnist is not installed"
few_images "$dir/data"

ok() { # NAME COMMAND...: the test passes if the command succeeds
    "${@:2}"
    result $? "$1"
}

fails() {
    ! "$@"
}

trains() { # TASK OPTION... - train on few images
    timeout -k 5 $((100 * slow)) "$train" "$@" --data "$dir/data" --progress none \
        >"$said" 2>&1 </dev/null
}

column() { # FILE NAME - print the column of all lines
    awk -F , -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i }
        NR > 1 { print $at }' "$dir/$1"
}

value() { # FILE NAME - print the column of the last line
    column "$@" | tail -n 1
}

above() { # NUMBER LIMIT
    awk -v x="$1" -v limit="$2" 'BEGIN { exit !(x > limit) }'
}

same() { # TASK OPTION... - two runs have the same bits on all ranks and converge
    trains "$@" --csv "$dir/first" && trains "$@" --csv "$dir/again" &&
        [ "$(value first hash)" = "$(value again hash)" ] &&
        [ "$(value first identical)" = yes ] && above "$(value first value)" 50
}

said_once() { # WORDS
    [ "$(grep -c -- "$1" "$said")" = 1 ]
}

# --- each strategy, and the bits of a seed ---

for strategy in sync pipe:width=2+int8 local:period=4 diloco:period=4 sgp lsgd:period=4 \
    easgd:period=4; do
    ok "$strategy: two ranks, and the seed gives the same model again" same logreg -n 2 \
        --strategy "$strategy" --steps 24
done
ok "osgp: three ranks train" trains svm -n 3 --strategy osgp:tau=1 --steps 16
ok "agp: three ranks train" trains svm -n 3 --strategy agp --steps 16
ok "agp: all end with the first rank" trains svm -n 3 --strategy agp --steps 40 --until first \
    --compute-ms 2 --slow-rank 2,100 --csv "$dir/until"
ok "the slow rank has taken few steps" above 36 "$(value until steps)"
ok "and the first all of its own" above "$(value until steps)" 13
ok "DGC with shares of the steps and parts: the same model again" same mlp -n 3 \
    --steps 12 --batch 16 --parts layers --rate 0.1 --codec topk:ratio=0.05 \
    --feedback ef14:momentum=0.9,clip=2,warmup=25%,stages=2
ok "codecs of layers by their names" trains cnnall -n 2 --steps 2 --batch 4 \
    --parts 'conv=adacomp:bin=50;dense=int8'
ok "the table has a row" grep -q '^cnnall.*conv=adacomp' "$said"
ok "seeds are repeated, with their spread" trains logreg -n 2 --seeds 2 --steps 8 \
    --csv "$dir/seeds"
ok "and in the file they are lines" [ "$(wc -l <"$dir/seeds")" = 3 ]
ok "another seed gives another model" [ "$(column seeds hash | sort -u | wc -l)" = 2 ]
ok "time is slept, and slow steps are slower" trains logreg -n 2 --steps 20 \
    --compute-ms 2 --straggle 0.5,4 --csv "$dir/slow"
ok "by what was said" above "$(value slow seconds)" 0.06
ok "one rank is slowed" trains logreg -n 2 --steps 10 --compute-ms 2 --slow-rank 1,4 \
    --csv "$dir/slow-rank"
ok "all of its steps" above "$(value slow-rank seconds)" 0.08
ok "a strategy that needs tribd gets one" trains logreg -n 2 --steps 4 \
    --strategy ps:staleness=1
behind_a_link() {
    trains svm -n 2 --steps 4 --strategy ps:staleness=1 --link 1gbit ||
        grep -qE 'network namespaces|iproute2' "$said"
}
ok "also on a host beside its ranks', where hosts can be made" behind_a_link
if command -v bible >/dev/null; then
    expect "the character model trains on the text of bible-kjv" 0 lstm "$train" lstm -n 2 \
        --steps 1 --batch 2
fi

# --- codes ---

if grep -q "^TRIB_ISAL_TRUE=''" "$build/config.log"; then
    coded() { # TASK OPTION... - coded gradients equal the plain ones
        trains "$@" --steps 12 --csv "$dir/coded" && above 1e-5 "$(value coded gradient_error)"
    }
    ok "rlnc: six ranks, one slow and one lost" coded logreg -n 6 --code rlnc \
        --partitions 4 --compute-ms 1 --straggle 0.3,9 --leave 2,4
    plain=$(value coded value)
    ok "mds: a rank is lost, and another one comes" coded logreg -n 6 --code mds \
        --partitions 3 --leave 1,3 --join 6
    ok "gradient codes end at the same accuracy" coded logreg -n 4 --code gradient:spare=1
    ok "and so they do" [ "$(value coded value)" = "$plain" ]
    ok "encoding by rlnc" coded svm -n 6 --code rlnc --partitions 4
    ok "moves half of what MDS moves" [ "$(value coded encoded_ratio)" = 0.5000 ]
    ok "encoding by mds" coded svm -n 6 --code mds --partitions 4
    ok "moves all of it" [ "$(value coded encoded_ratio)" = 1.0000 ]
fi

# --- replicas ---

shared() { # KIND REPLICAS [OPTION...] - train with batches of 24 in 6 shares
    trains mlp --kind "$1" --replicas "$2" --batch 24 --steps 6 --csv "$dir/shared" "${@:3}"
}
same_bits() { # KIND REPLICAS [OPTION...]
    shared "$@" && [ "$(value shared identical)$(value shared hash)" = "yes$bits" ]
}
ok "one replica of the whole batch" shared one:shares=6 1
bits=$(value shared hash)
ok "three threads: the same bits" same_bits threads:shares=6 3
ok "two processes, one of which makes all samples" same_bits workers:shares=6,input=single 2
ok "another order of adding has other bits" fails same_bits workers 2
ok "which learn nearly the same" trains logreg --kind workers --replicas 2 --steps 24 \
    --straggle 0.2,2 --codec int8 --csv "$dir/shared"
ok "in a class or the other" above "$(value shared value)" 50

# --- ranks, files ---

expect "it is a rank under trib-run" 0 "logreg" "$run" -n 2 --tag none -- "$train" logreg \
    --data "$dir/data" --steps 4
expect "--ranks there is refused" any "omit --ranks" "$run" -n 2 --tag none -- \
    "$train" logreg -n 2 --data "$dir/data" --steps 4
ok "one rank trains alone" trains logreg --steps 2
ok "curve and gradients are written" trains mlp -n 2 --batch 8 --steps 3 \
    --curve "$dir/curve" --record "$dir/record" --json "$dir/json"
ok "the last line of the curve is the last step" \
    [ "$(tail -n 1 "$dir/curve" | cut -d , -f 1)" = 3 ]
ok "the JSON file is one" python3 -c 'import json, sys
t = json.load(open(sys.argv[1]))["trainings"][0]
assert t["task"] == "mlp" and len(t["points"]) == 3 and t["identical"]' "$dir/json"
bytes=$((4 * (785 * 512 + 513 * 256 + 257 * 10)))
ok "gradients of steps 1, 2 and the last, whole" \
    [ "$(stat -c '%n %s' "$dir"/record/* | sed 's|.*/||' | paste -sd ,)" = \
    "gradient-1.f32 $bytes,gradient-2.f32 $bytes,gradient-3.f32 $bytes" ]
ok "with a codec" trains mlp -n 2 --batch 8 --steps 3 --record "$dir/record-topk" \
    --codec topk
ok "the first is the same: it is what a rank computed" \
    cmp "$dir/record/gradient-1.f32" "$dir/record-topk/gradient-1.f32"
ok "later ones are not" fails cmp -s "$dir/record/gradient-3.f32" \
    "$dir/record-topk/gradient-3.f32"
ok "gradients are recorded anew" env OPENBLAS_NUM_THREADS=1 \
    "$source/scripts/record-gradients" "$build" "$dir/anew" 11 >"$said" 2>&1
ok "as large as those of tests/data" [ "$(stat -c %s "$dir/anew/gradient-early.f32")" = \
    "$(stat -c %s "$source/tests/data/gradient-early.f32")" ]

# --- lists and comparisons ---

expect "what there is" 0 "pipe-int8" "$train" list
ok "rows are compared, and drawn where gnuplot is" trains compare svm qsgd4 --quick -n 2 \
    --steps 40 --link 1gbit --out "$dir/out"
ok "with the difference to dense" grep -q -- '- dense' "$said"
ok "and what columns and rows are" grep -q -- '^  qsgd4 .*sync+qsgd:bits=4' "$said"
# shellcheck disable=SC2016 # it is awk's
ok "in lines of 110 columns" awk '/^row/, /^$/ { if (length($0) > 110) exit 1 }' "$said"
ok "in Markdown" grep -q '^| qsgd4 .*qsgd:bits=4' "$dir/out/compare.md"
ok "and CSV, with the link" grep -q '^task.*link0_step_ms' "$dir/out/compare.csv"
ok "seconds to the target are the first crossing of the curve" python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))["trainings"]
target = rows[0]["value"] - 1
for row in rows:
    link, steps, last = row["links"][0], None, None
    for step, _, value, *_ in row["points"]:
        if value >= target and steps is None:
            part = (target - last[1]) / (value - last[1]) if last else 1
            steps = last[0] + part * (step - last[0]) if last else step
        last = step, value
    assert steps is not None or link["to_target_s"] is None, row
    assert steps is None or abs(link["to_target_s"] - steps * link["step_ms"] / 1e3) < 1e-5
    assert not link["measured"] or abs(
        link["wait_ms"] - (1 - link["hidden"]) * link["step_ms"]) < 1e-5, row' \
    "$dir/out/compare.json"
if command -v gnuplot >/dev/null; then
    ok "three pictures" [ "$(find "$dir/out" -name '*.png' -size +4k | wc -l)" = 3 ]
fi

# A step that sleeps cannot be faster: a higher rate would include steps of other ranks.
ok "stragglers: rows beside slow ranks" trains compare stragglers local downpour -n 2 \
    --steps 8 --compute-ms 10 --out "$dir/slow-out"
ok "samples a second are of ranks that run, and none is faster than its sleep" python3 -c '
import csv, sys
rate = {(r["row"], r["slow"]): float(r["samples_s"]) for r in csv.DictReader(open(sys.argv[1]))}
assert len(rate) == 9, rate
for (row, slow), found in rate.items():
    slowest = 4 if slow == "one" else 1
    all_wait = row == "dense"
    most = 4 / 10e-3 * (2 / slowest if all_wait else 1 + 1 / slowest)
    assert 0 < found <= most * 1.001, (row, slow, found, most)' "$dir/slow-out/stragglers.csv"
ok "compare.json has the same figures" python3 -c '
import csv, json, sys
found = json.load(open(sys.argv[1]))["stragglers"]
lines = list(csv.DictReader(open(sys.argv[2])))
assert [(s["row"], s["slow"]) for s in found] == [(r["row"], r["slow"]) for r in lines]
for s, r in zip(found, lines):
    for key in ("samples_s", "of_dense"):
        assert abs(s[key] / float(r[key]) - 1) < 1e-2, (s, r)' \
    "$dir/slow-out/compare.json" "$dir/slow-out/stragglers.csv"

tribd_of() { # PID - find the tribd that a process has started
    pgrep -P "$1" -x tribd >"$dir/tribd"
}

serves_alone() { # AUTH - a comparison run as root has a tribd that no other host reaches, and leaves nothing
    local said_auth pid tribd home status
    home=$(readlink /proc/self/ns/net)
    "$train" compare stragglers ps -n 2 --steps 12 --compute-ms 30 --data "$dir/data" \
        --progress none >"$said" 2>&1 </dev/null &
    pid=$!
    within 60 tribd_of "$pid" && tribd=$(cat "$dir/tribd") &&
        [ "$(readlink "/proc/$tribd/ns/net")" != "$home" ] &&
        said_auth=$(tr '\0' '\n' <"/proc/$tribd/environ" | sed -n 's/^TRIBD_AUTH=//p') &&
        [ "$said_auth" = "$1" ]
    status=$?
    wait "$pid" && [ "$status" = 0 ] && ! kill -0 "$tribd" 2>/dev/null
}
if unshare --net true 2>/dev/null; then
    ok "the tribd of a comparison is in a network of its own, and nothing is sealed" \
        serves_alone none
    export TRIB_SEAL=1
    ok "unless the user wants it" serves_alone ""
    unset TRIB_SEAL
fi

stops() { # send a signal in the middle of the first of two rows
    "$train" compare logreg onebit -n 2 --seeds 1 --steps 100000 --data "$dir/data" \
        --progress lines >"$said" 2>&1 </dev/null &
    within 60 grep -q 'dense.*loss' "$said"
    kill -TERM $!
    wait $!
    [ $? = 143 ] && ! grep -q onebit "$said"
}
ok "a signal ends all rows" stops

# A mistake in a row would waste an hour of ./dev bench train. Without ip there are no hosts.
expect "each row of the comparison trains; where no hosts can be made times are from bytes" 0 \
    "from bytes" env PATH="$dir/none" "$train" compare mlp cnnall --seeds 1 --steps 2 -n 2 \
    --batch 2 --link 10gbit --data "$dir/data" --progress none

# --- errors ---

wrong() { # NAME WORDS OPTION... - the error is reported once, and no rank hangs
    ok "$1" fails trains "${@:3}"
    ok "$1: it is said once" said_once "$2"
}

wrong "a task that is not there" "did you mean cnn?" cnm -n 2
wrong "a strategy that is not there" "did you mean" logreg -n 3 --strategy pipes --steps 1
wrong "a wrong codec" tpok logreg -n 3 --codec tpok --steps 1
wrong "a codec that a strategy refuses" "for neighbours" logreg -n 2 --strategy sgp+topk --steps 1
wrong "parts that no layer has" "names begin with" mlp -n 2 --batch 8 --steps 1 \
    --parts lstm=int8
wrong "a batch that does not fit" "does not fit" logreg -n 2 --batch 4000 --steps 1
wrong "a word where a number belongs" "--steps 'many' is not" logreg --steps many
wrong "momentum twice" "momentum twice: feedback .*, and the optimizer" logreg -n 2 --codec topk \
    --feedback ef14:momentum=0.9 --optimizer sgd:momentum=0.9 --steps 1
wrong "half a straggler" "--straggle '0.5' is not" logreg --straggle 0.5
wrong "a rank that is not there" "there are 2 ranks" logreg -n 2 --steps 1 --slow-rank 2,4
wrong "an end of nobody" "--until 'never' must be" logreg --until never
wrong "an end of ranks that wait for each other" "agp and downpour" logreg -n 2 \
    --strategy sgp --until first
wrong "a codec that agp refuses" "uncompressed" logreg -n 2 --strategy agp+int8 --steps 1
wrong "half of a slow rank" "--slow-rank '1' is not R,X" logreg --slow-rank 1
wrong "a tribd that hosts do not reach" "omit it" logreg -n 2 --link 1gbit \
    --service localhost:1 --strategy ps
wrong "a file that cannot be written" "none/x.csv" logreg -n 3 --steps 1 \
    --csv "$dir/none/x.csv"
wrong "a folder that cannot be made" "none/record: " logreg -n 3 --steps 1 \
    --record "$dir/none/record"
wrong "a row that is not there" "unknown task or row" compare mlp dcg
wrong "a task without rows" "unknown task or row 'cnnwide'" compare cnnwide
wrong "a code without a linear model" "logreg and svm" mlp -n 2 --code rlnc
wrong "a code that is not there" "did you mean" logreg -n 3 --code rlmc
wrong "a code and a strategy" "codec has no effect" logreg -n 2 --code rlnc --codec int8
wrong "more partitions than ranks" "at first there are 2" logreg -n 2 --code rlnc \
    --partitions 3
wrong "too many ranks lost" "need as many ranks" logreg -n 3 --code none --leave 1,2 --steps 9
wrong "a batch that replicas cannot share" "18 would" mlp --kind workers --replicas 3 \
    --batch 16
wrong "a kind of a task without numbers" "samples are numbered" lstm --kind one
wrong "a kind of many trainings" "kind has no effect" compare mlp --kind one
wrong "replicas of no kind" "replicas has no effect" mlp --replicas 2
wrong "devices of a task" "split a model across devices" logreg --kind workers:devices=2 --replicas 2
wrong "an option of compare" "quick has no effect" logreg --quick
expect "no data" any "install dataset-fashion-mnist" "$train" logreg -n 3 \
    --data "$dir/none" --steps 1
expect "no word" 2 "name a task" "$train"
finish
