#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib-perf put as a user runs it: both forms, strangers, peers that die, nonsense.
set -u
perf=${abs_top_builddir:-.}/perf/trib-perf
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
number=0 failed=0
unset TRIB_TRANSPORT TRIB_TIMEOUT_MS
export TRIB_BOOT_TIMEOUT_MS=20000

result() { # 0 or 1, NAME
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        failed=1
        sed 's/^/# /' "$place"/said*
    fi
}

# NAME, expected exit code, words that must be said, arguments
expect() {
    local name=$1 code=$2 words=$3
    shift 3
    timeout 100 "$perf" put "$@" >"$place/said" 2>&1 </dev/null
    local got=$?
    grep -qF -- "$words" "$place/said" && [ "$got" -eq "$code" ]
    result $? "$name (exit code $got)"
}

# serve TAG - a server at a free port of this host: sets port and server, a process.
serve() {
    local tries waited
    for ((tries = 0; tries < 20; tries++)); do
        port=$((20000 + (RANDOM + $$) % 10000))
        : >"$place/said.$1" # the last server's word must not pass for this one's
        "$perf" put --listen "127.0.0.1:$port" >"$place/said.$1" 2>&1 </dev/null &
        server=$!
        for ((waited = 0; waited < 600; waited++)); do
            ! grep -q "listening at port" "$place/said.$1" || return 0
            kill -0 "$server" 2>/dev/null || break # the port is another's
            sleep 0.05
        done
        wait "$server"
    done
    return 1
}

# served NAME, expected exit code, words of the server
served() {
    wait "$server"
    local got=$?
    grep -qF -- "$3" "$place"/said.server && [ "$got" -eq "$2" ]
    result $? "$1 (exit code $got)"
}

quick=(--iters 50 --sizes "0,8,4K,200001")
for transport in shm tcp; do
    expect "both sides here over $transport" 0 "200001 B" --transport "$transport" --check \
        "${quick[@]}"
    expect "both ways over $transport" 0 "both ways" --transport "$transport" --check \
        --bidirectional --depth 3 "${quick[@]}"
    serve server
    expect "a client over $transport" 0 "200001 B" "127.0.0.1:$port" --check \
        --transport "$transport" "${quick[@]}"
    served "its server" 0 "listening at port $port"
done

expect "latency only" 0 "half of a round trip" --latency "${quick[@]}"
! grep -q "bandwidth" "$place/said"
result $? "then no bandwidth is shown"
expect "bandwidth only" 0 "million/s" --bandwidth --bind core "${quick[@]}"
! grep -q "p50" "$place/said"
result $? "then no latency is shown"
expect "auto says what it became" 0 "put over shm" --transport auto "${quick[@]}"
expect "csv on standard output" 0 "transport,depth,ways,bytes" --csv - "${quick[@]}"
awk -F, 'NR == 1 { n = NF; next } NF != n { exit 1 } END { exit NR != 5 }' "$place/said"
result $? "csv has a header and a row a size, of as many columns, and nothing else"
expect "json into a file" 0 "over" --json "$place/out.json" "${quick[@]}"
grep -q '"p999_us"' "$place/out.json" && grep -q '"cpu_s_per_GB"' "$place/out.json" &&
    grep -q '"kernel"' "$place/out.json"
result $? "json has results and the machine"
expect "damage is counted" 1 "bytes are wrong" --transport shm+corrupt:nth=3 --check \
    --iters 50 --sizes 64

# Strangers: the server tells of them and serves the client that comes after.
serve server
for words in 'GET / HTTP/1.0\r\n\r\n' '' 'PbrT\001\000\000\000\377\377\377\377\000\000\000\000'; do
    # shellcheck disable=SC2059 # words are for printf
    (exec 3<>"/dev/tcp/127.0.0.1/$port" && printf "$words" >&3)
done
expect "a client after strangers" 0 "200001 B" "127.0.0.1:$port" "${quick[@]}"
served "strangers are told of" 0 "does not speak as trib-perf put does"

expect "a file that cannot be" 2 "cannot write /no/such/place" --csv /no/such/place/x.csv
expect "a transport that is none" 1 'no transport is called "smh"' --transport smh
expect "a transport that reaches one process" 1 "one process only" --transport loop
expect "a misspelt option" 2 "did you mean --sizes?" --size 8
expect "two servers" 2 "one server at a time" allreduce:1 put
timeout 60 "$perf" --check put >"$place/said" 2>&1
[ $? -eq 2 ] && grep -q "put stands first" "$place/said"
result $? "an option before put"
TRIB_RANK=0 expect "under a launcher" 2 "leave out the launcher" --sizes 8
expect "help" 0 "usage: trib-perf put" --help

export TRIB_BOOT_TIMEOUT_MS=300
expect "nobody there" 1 "no trib-perf put at 127.0.0.1 port 1 within" 127.0.0.1:1
serve server
served "nobody comes" 1 "no client came within 300 ms"
TRIB_BOOT_TIMEOUT_MS=20000 serve server
expect "a port in use" 1 "is in use" --listen "127.0.0.1:$port"
expect "an address of another host" 1 "is no address of this host" --listen 192.0.2.1:7100

# A server that dies in the middle, and a client. Each has measured for a while before.
for transport in shm tcp; do
    for victim in server client; do
        TRIB_BOOT_TIMEOUT_MS=20000 serve server
        : >"$place/said"
        TRIB_BOOT_TIMEOUT_MS=20000 "$perf" put "127.0.0.1:$port" --sizes 8,8 \
            --transport "$transport" --latency --iters 50000000 >"$place/said" 2>&1 &
        client=$!
        for ((waited = 0; waited < 600; waited++)); do
            ! grep -q "one way" "$place/said" || break
            sleep 0.05
        done
        if [ "$victim" = server ]; then
            kill -9 "$server"
            wait "$client"
            [ $? -eq 1 ] && grep -qE "127.0.0.1:$port (is lost|has closed)" "$place/said"
            result $? "a server dies over $transport: the client says so"
            wait "$server" 2>/dev/null
        else
            kill -9 "$client"
            wait "$client" 2>/dev/null
            served "a client dies over $transport: the server says so" 1 "the client 127.0.0.1"
        fi
    done
done
echo "1..$number"
exit "$failed"
