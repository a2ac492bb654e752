#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib-info as a user runs it.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
info=$build/tools/trib-info

expect "summary names the version" 0 "tributary " "$info"
expect "summary lists transports" 0 "transports" "$info"
expect "summary bounds the memory" 0 "slots per link" "$info"
expect "summary fits a screen" 0 "settings: all default" "$info"
expect "settings" 0 "TRIB_CHUNK" "$info" --config
TRIB_CHUNK=64K expect "origin of a setting" 0 "environment" "$info" --config
TRIB_CHUNK=64K expect "summary shows what was set" 0 "TRIB_CHUNK" "$info"
TRIB_CHUNK=lots expect "an impossible setting" 1 "TRIB_CHUNK" "$info"
grep -q "^! *TRIB_CHUNK=lots in the environment" "$said" && grep -q "slots per link" "$said"
result $? "the summary is still complete"
TRIB_CHUNK='' expect "an empty setting" 1 "! TRIB_CHUNK" "$info" --config
grep -q "^  TRIB_WINDOW " "$said"
result $? "the other settings are still listed"
TRIB_CHUNK=7 expect "an impossible setting as json" 1 \
    '"fault": "TRIB_CHUNK=7 in the environment' "$info" --json --config
TRIB_CODEC=qsdg expect "a misspelt codec" 1 "! TRIB_CODEC" "$info" --config
TRIB_FEEDBACK=ef41 expect "a misspelt feedback" 1 "! TRIB_FEEDBACK" "$info" --config
TRIB_CODEC=qsgd TRIB_FEEDBACK=ef21 expect "feedback that the codec does not allow" 1 \
    "ef21 requires a contraction" "$info" --config
TRIB_CODEC=topk:ratio=5 expect "a codec's option" 1 "it must be a number" "$info" --config
TRIB_ALGORITHM=rong expect "a misspelt algorithm" 1 "! TRIB_ALGORITHM" "$info" --config
TRIB_TRANSPORT=smh expect "a misspelt transport" 1 "! TRIB_TRANSPORT" "$info" --config
TRIB_TRANSPORT=shm+dely:us=5 expect "a misspelt decorator" 1 '"dely"' "$info" --config
TRIB_TRANSPORT=shm:foo=1 expect "a transport's parameter" 1 \
    '! TRIB_TRANSPORT' "$info" --config
TRIB_TRANSPORT=auto:foo=1 expect "the doctor of a transport's parameter" 1 \
    'auto has no parameter "foo"' "$info" doctor
echo "chnk = 64K" >"$dir/settings"
TRIB_CONFIG_FILE=$dir/settings expect "an unknown name in the file" 1 \
    "! TRIB_CONFIG_FILE" "$info" --config
grep -q "^  TRIB_CHUNK " "$said" && grep -q '^! .*did you mean "chunk"' "$said"
result $? "is marked among all settings"
TRIB_CODEK=bf16 expect "a variable that is no setting" 0 "did you mean TRIB_CODEC?" "$info"
[ "$(grep -c TRIB_CODEK "$said")" = 1 ]
result $? "is printed once"
expect "memory" 0 "slots per link   324 KiB" "$info" --memory
grep -qE "memory free +[0-9]+ KiB" "$said"
result $? "and what this host has free"
expect "memory as json" 0 '"memory": [' "$info" --json
expect "caches have units" 0 "" "$info" --topology
! grep -E "(cache|memory) " "$said" | grep -vqE " [0-9]+ ([KMG]iB|bytes)( |$)"
result $? "each of them"
expect "codecs" 0 "B/elem  linear  unbiased  delta  shared" "$info" --codecs
[ "$(grep -cE "^  [a-z][a-z0-9-]+ +[0-9.]+ +(yes|-) +(yes|-) +([0-9.]+|-) +[a-z-]+ +." "$said")" \
    = "$("$info" --json --codecs | grep -c '"detail"')" ]
result $? "a line each"
! LC_ALL=C.UTF-8 grep -qE "^.{101}|…$" "$said"
result $? "none is wider than 100 columns, none is cut"
expect "all about a codec" 0 "k         -        1 to 4294967295, whole" "$info" --codecs topk
grep -q "^  delta  *100: " "$said" && grep -q "^  paper .*arXiv 1704.05021" "$said" &&
    grep -q "^  bytes  *0.0503 per element for 65536 normal values; at most 4$" "$said"
result $? "properties, paper, bytes"
expect "the values of a text beside the defaults" 0 "    bits      2      4        2 to 8, whole" \
    "$info" --codecs qsgd:bits=2
expect "a codec behind a selection" 0 "  +natural" "$info" --codecs topk+natural
expect "no codec" 2 'did you mean "topk"?' "$info" --codecs tpok
expect "a codec as json" 0 '"default": "0.01"' "$info" --codecs topk --json
grep -q '"delta": 100.0' "$said" && grep -q '"bytes_per_element": 0.0503' "$said"
result $? "has numbers"
expect "algorithms" 0 "  ring   " "$info" --algorithms
expect "json" 0 '"algorithms": [' "$info" --json
expect "json of one part" 0 '"codecs": [' "$info" --codecs --json
expect "a misspelt option" 2 "did you mean --codecs?" "$info" --coedcs
expect "a wrong option" 2 "see trib-info --help" "$info" --nonsense
expect "help" 0 "usage: trib-info" "$info" --help

expect "the doctor, alone" 0 "ok    tcp: opens" "$info" doctor
if ! grep -q "verbs: is not used" "$said"; then
    skip "the doctor without RDMA devices" "this host has one, or the build is without verbs"
else
    grep -q "is not used: this host has no RDMA device.*(ibv_devices lists devices)$" "$said"
    result $? "the doctor without RDMA devices"
fi
expect "the doctor of three ranks" 0 "ok    shm: 6 of 6 directions" \
    "$build/tools/trib-run" -n 3 --tag none -- "$info" doctor
[ "$(grep -c "FAIL$" "$said")" = 1 ]
result $? "speaks once"
mkdir -p "$dir/copy/proc/self"
echo "Max open files   10   10   files" >"$dir/copy/proc/self/limits"
expect "a copy of a host that lacks something" 1 "FAIL  open files: 10 files" \
    "$info" doctor --folder "$dir/copy"
TRIB_WINDOW=much expect "the doctor of an impossible setting" 1 "FAIL  rank" "$info" doctor
TRIB_CODEC=qsdg expect "the doctor of a misspelt codec" 1 'did you mean "qsgd"?' \
    "$info" doctor
TRIB_NONSENSE=1 expect "the doctor of an unknown setting" 0 "TRIB_NONSENSE" "$info" doctor
expect "the doctor's options" 2 "unknown option '--fodler'; did you mean --folder?" "$info" doctor --fodler
expect "the doctor's folder" 2 "--folder needs a value: FOLDER" "$info" doctor --folder
expect "the doctor's help" 0 "mpirun -N 1" "$info" doctor --help

# Lost output is reported.
refuse_full "a summary onto a full disk" "$info"
refuse_full "help onto a full disk" "$info" --help
refuse_full "the version onto a full disk" "$info" --version
refuse_full "codecs onto a full disk" "$info" --codecs
refuse_full "json onto a full disk" "$info" --json
refuse_full "a topology onto a full disk" "$info" --topo
refuse_full "a schedule onto a full disk" "$info" --schedule ring 4 1M
refuse_full "what reaches what, onto a full disk" "$info" --reach
refuse_full "the doctor onto a full disk" "$info" doctor
refuse_full "the doctor's help onto a full disk" "$info" doctor --help

# Below ulimit -f no process is killed. Use pipes, because files cannot be written then.
limited() { # KiB, command: print its output and exit code
    (
        ulimit -f "$1"
        shift
        timeout $((60 * slow)) "$@" 2>&1
        echo "exit code $?"
    ) | cat
}
text=$(limited 0 "$info" --version)
if [ "$slow" = 1 ] || [[ $text == *"exit code 0" ]]; then
    text=$(limited 0 "$info" doctor)
    echo "$text" >"$said"
    [[ $text == *"file size: files are limited to 0 KiB"*"ulimit -f unlimited"*"exit code 0" ]]
    result $? "the doctor below ulimit -f"
else
    skip "the doctor below ulimit -f" "a sanitizer ends its program there"
fi
text=$(limited 100 "$build/tools/trib-run" -n 2 -- "$info" --reach)
echo "$text" >"$said"
[[ $text == *"tcp: shm: shared memory of"*"raise ulimit -f"*"exit code 0" ]]
result $? "ranks below ulimit -f leave out shm, and say why"

# Transports list their findings on this host, not only their names.
expect "memory for shm" 0 "GiB of memory free" "$info" --transports
expect "devices as json" 0 '"value": "' "$info" --transports --json

# A network namespace, which initially has only loopback.
# shellcheck disable=SC2317 # called, by another shell
lonely() {
    shown=("$said") # arrays cannot be exported
    expect "no interface" 0 "loopback only" "$info" --transports
    ip link set lo up
    expect "loopback is none either" 0 "loopback only" "$info" --transports
    if ip link add there type veth peer name away 2>/dev/null; then
        ip addr add 10.98.76.54/24 dev there
        expect "an interface that is down" 0 "loopback only" "$info" --transports
        ip link set there up
        expect "an interface with its address" 0 "there (10.98.76.54" "$info" --transports
        expect "its link rate" 0 "10.98.76.54, 10 Gb/s)" "$info" --transports
        for i in $(seq 40); do
            ip addr add "10.98.75.$i/24" dev there
        done
        expect "a long list is cut" 0 "..." "$info" --transports
    else
        echo "# skipped: no veth in this kernel"
    fi
    echo "$number $failed" >"$dir/sum"
}
export -f lonely expect result
export info dir said number failed slow
if unshare --map-root-user --net true 2>/dev/null && command -v ip >/dev/null; then
    unshare --map-root-user --net bash -uc lonely
    read -r number failed <"$dir/sum"
else
    echo "# skipped: network name spaces are refused here, or there is no ip"
fi
finish
