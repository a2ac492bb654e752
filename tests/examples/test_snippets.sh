#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Snippets in headers and documents: each is compiled verbatim in a program of tests/examples/snippets, and runs
# unchanged and with a dying rank.
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
SOURCE=$(cd "${abs_top_srcdir:-.}" && pwd)

if [ -n "$(sanitizer)" ]; then
    skip_all "programs of a reader do not link a library that is built for a sanitizer"
fi
export LD_LIBRARY_PATH=$build/.libs
unset TRIB_CODEC TRIB_FEEDBACK TRIB_SERVICE

mkdir "$dir/c" "$dir/bin"
expect "each snippet has a program that runs it" 0 "" \
    /usr/bin/python3 "$SOURCE/tests/examples/snippets.py" "$SOURCE" "$dir/c" "$SOURCE"/tests/examples/snippets/*.c

compile() { # PROGRAM, NAME OF ITS FILE, FLAG…
    # shellcheck disable=SC2086 # CC may have words
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -O1 -Wall -Werror -Wno-unused-variable -Wno-unused-but-set-variable "${@:3}" -I "$SOURCE/include" \
        -o "$dir/bin/$1" "$dir/c/printed_$2.c" -L "$build/.libs" -ltributary-train -ltributary -lm >"$said" 2>&1
}

for file in "$SOURCE"/tests/examples/snippets/*.c; do
    name=$(basename "${file/printed_/}" .c)
    compile "$name" "$name"
    result $? "$name compiles"
done
compile trainer_header trainer_lost -DOF_HEADER
result $? "trainer_lost compiles with the header's function"

run() { # RANKS, PROGRAM, WORD…: surviving ranks have 50 s
    timeout -k 5 $((60 * slow)) "$build/tools/trib-run" -n "$1" --grace $((50 * slow)) -- "$dir/bin/$2" "${@:3}" >"$said" 2>&1
    code=$?
    echo "exit code $code" >>"$said"
}

said() { # NUMBER OF LINES, PATTERN
    [ "$(grep -cE -- "$2" "$said")" = "$1" ]
}

# Surviving ranks; 137 is the exit code of the killed one.
for fault in step end; do
    run 4 elastic $fault
    [ $code = 137 ] && said 3 'of 3: 20 steps$'
    result $? "elastic.h: three ranks continue, fault $fault"
done
run 4 elastic wrong
[ $code = 3 ] && said 4 'error at step 7: '
result $? "elastic.h: another error ends the loop"

# All strategies, each with a rank that dies at two of the positions.
faults=(end last settle) turn=0
for strategy in sync pipe:predict=0 local:period=4 diloco:period=4 easgd:period=4 lsgd:period=4 sgp osgp:tau=2 agp; do
    for fault in compute ${faults[turn % 3]}; do
        [ "$fault" = compute ] && program=trainer_lost || program=trainer_header
        run 3 "$program" "$strategy" "$fault"
        [ $code = 137 ] && said 2 'of 2: step (39|40), x' &&
            { [ "$strategy" != sync ] || said 2 'x (0\.[0-9]*), right \1$'; }
        result $? "training.md: $strategy continues, fault $fault"
    done
    turn=$((turn + 1))
done
for strategy in sync local agp; do
    run 3 trainer_lost $strategy wrong
    [ $code = 3 ] && said 3 'error at step 5: no step has begun'
    result $? "training.md: another error ends the loop of $strategy"
done

run 3 trainer
[ $code = 0 ] && said 3 '^\[.\] 20 steps: 0\.18'
result $? "train.h: the loop trains"
run 3 trainer dies
[ $code = 137 ] && said 2 'steps: .*rank 1 .*is lost' && said 2 '\] ended$'
result $? "train.h: an error ends the loop"

run 2 sums
[ $code = 0 ] && said 2 'sum 2$' && said 2 'group 2$' && said 2 'pairs 2$'
result $? "sums, groups, messages, neighbours and pairs"
for part in 1 2 3 4 5; do
    run 2 sums $part
    [ $code = 137 ] && said 1 'ended: rank 1 .*is lost'
    result $? "sums: an error where rank 1 dies before part $part"
done

mkdir "$dir/states"
run 3 state "$dir/states"
[ $code = 137 ] && said 2 'held back: 10800.0000 before, 10800.0000 after'
result $? "feedback.md: two ranks continue from the states of three"

run 16 coded
[ $code = 0 ] && said 1 'all products'
result $? "coded.h: products"
run 16 coded dies
[ $code = 137 ] && said 1 'all products'
result $? "coded.h: products without rank 3"

run 2 replicator
[ $code = 0 ] && said 2 'x 1.000'
result $? "replicator.h and replicator.md"
run 2 replicator 3
said 1 'rank 1 .*is lost'
result $? "replicator.h: a rank dies"
run 2 replicator fail
said 2 'has failed in step 0: label 7'
result $? "replicator.h: trib_replica_fail"

start_daemon one || finish
service one run 3 store
[ $code = 0 ] && said 3 'version 3'
result $? "store.h: pushes and pulls"
service one run 3 store dies
[ $code = 137 ] && said 2 'version 3'
result $? "store.h: pushes of a rank that dies stay"
finish
