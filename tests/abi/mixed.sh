# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Helpers of tests that mix two releases; source it after tap.sh. Each release is a folder with libtributary.so.0,
# trib-run and tribd: $old and $new. Either all ranks sum, or all report which release to install. Anything else
# fails, including a hang.
#
#     words="install the same"        text that each error message must contain
#     mixed NAME WANT "RANKS" …       start three ranks: those in the list use $old, all others $new. WANT is sum,
#                                     sentence or either, and … is a trib-run with its options
#     with_tribd NAME "WORDS" "RANKS" TRIBD
#                                     start two ranks with that tribd. They "may" or "must" (fifth argument) be
#                                     warned, with these words, that it does not sum for them. They sum anyway.
#                                     starter=FOLDER: its trib-run starts them
# shellcheck disable=SC2154 # set by tap.sh and the sourcing scripts

cat >"$dir/pick" <<'TEXT'
#!/bin/sh
LD_LIBRARY_PATH=$MIXED_NEW program=$MIXED_NEW_PROGRAM
case " $MIXED_RANKS " in *" $TRIB_RANK "*) LD_LIBRARY_PATH=$MIXED_OLD program=$MIXED_OLD_PROGRAM ;; esac
export LD_LIBRARY_PATH
exec "$program"
TEXT
chmod +x "$dir/pick"
export MIXED_OLD=$old MIXED_NEW=$new MIXED_OLD_PROGRAM=${old_program:-$program} MIXED_NEW_PROGRAM=$program

launch() { # command: store its output and that of the ranks in $said, its exit code in $got
    LD_LIBRARY_PATH=${1%/*} timeout -k 5 $((${mixed_seconds:-60} * slow)) "$@" -- "$dir/pick" >"$said" 2>&1 </dev/null
    got=$?
    summed=$(grep -c '^\[[0-9]*\] sum, ' "$said")
    told=$(grep -c "^\[[0-9]*\] says: .*$words" "$said")
}

mixed() {
    local name=$1 want=$2 got summed told good
    export MIXED_RANKS=$3
    shift 3
    launch "$@"
    case $want in
    sum) [ "$summed" = 3 ] ;;
    sentence) [ "$told" = 3 ] ;;
    *) [ "$summed" = 3 ] || [ "$told" = 3 ] ;;
    esac
    good=$?
    [ $got != 124 ] || good=1
    [ $good = 0 ] || echo "exit code $got: $summed of 3 ranks sum, $told say \"$words\"" >>"$said"
    result $good "$name"
}

with_tribd() {
    local got summed told warned=0 pid port=$((20000 + RANDOM % 12000))
    export MIXED_RANKS=$3
    (umask 077; head -c 32 /dev/urandom >"$dir/key")
    printf '%s\n' "listen = 127.0.0.1:$port" "auth = key" "key = $dir/key" "threads = 1" \
        "http = 127.0.0.1:$((port + 1))" >"$dir/conf"
    rm -f "$dir/tribd.log" # of the tribd before, which listened
    LD_LIBRARY_PATH=${4%/*} "$4" --config "$dir/conf" >"$dir/tribd.log" 2>&1 </dev/null &
    pid=$!
    within 20 grep -q "listening at" "$dir/tribd.log"
    TRIB_SERVICE=127.0.0.1:$port TRIB_SERVICE_AUTH=key TRIB_SERVICE_KEY=$dir/key launch "${starter:-$new}/trib-run" -n 2
    kill "$pid"
    wait "$pid"
    grep -q "warning: service: .*$2" "$said" || ! grep -q "warning: service" "$said" || warned=1
    [ "$5" != must ] || grep -q "warning: service: .*$2" "$said" || warned=1
    [ "$summed" = 2 ] && [ $warned = 0 ] && [ $got = 0 ]
    result $? "$1"
}
