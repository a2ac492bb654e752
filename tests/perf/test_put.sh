#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib-perf put as a user runs it: both forms, unauthenticated peers, dying peers, wrong
# arguments.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=$build/perf/trib-perf
shown=("$said" "$dir/said.server")
: >"$dir/said.server"
expect_seconds=100
unset TRIB_TRANSPORT TRIB_TIMEOUT_MS
export TRIB_BOOT_TIMEOUT_MS=20000

# NAME, expected exit code, required words of the output, arguments
put() {
    expect "$1" "$2" "$3" "$perf" put "${@:4}"
}

# serve TAG - start a server at a free port of this host; set port and server, its pid.
serve() {
    local tries waited
    for ((tries = 0; tries < 20; tries++)); do
        port=$((20000 + (RANDOM + $$) % 10000))
        : >"$dir/said.$1" # remove the output of the previous server
        "$perf" put --listen "127.0.0.1:$port" >"$dir/said.$1" 2>&1 </dev/null &
        server=$!
        for ((waited = 0; waited < 600; waited++)); do
            ! grep -q "listening at port" "$dir/said.$1" || return 0
            kill -0 "$server" 2>/dev/null || break # another process has the port
            sleep 0.05
        done
        wait "$server"
    done
    return 1
}

# served NAME, expected exit code, required words of the server
served() {
    wait "$server"
    local got=$?
    grep -qF -- "$3" "$dir"/said.server && [ "$got" -eq "$2" ]
    result $? "$1 (exit code $got)"
}

quick=(--iters 50 --sizes "0,8,4K,200001")
for transport in shm tcp; do
    put "both sides here over $transport" 0 "200001 B" --transport "$transport" --check \
        "${quick[@]}"
    put "both ways over $transport" 0 "both ways" --transport "$transport" --check \
        --bidirectional --depth 3 "${quick[@]}"
    serve server
    put "a client over $transport" 0 "200001 B" "127.0.0.1:$port" --check \
        --transport "$transport" "${quick[@]}"
    served "its server" 0 "listening at port $port"
done

put "latency only" 0 "half of a round trip" --latency "${quick[@]}"
! grep -q "bandwidth" "$said"
result $? "then no bandwidth is shown"
put "bandwidth only" 0 "million/s" --bandwidth --bind core "${quick[@]}"
! grep -q "p50" "$said"
result $? "then no latency is shown"
put "auto says what it became" 0 "put over shm" --transport auto "${quick[@]}"
put "csv on standard output" 0 "transport,depth,ways,bytes" --csv - "${quick[@]}"
awk -F, 'NR == 1 { n = NF; next } NF != n { exit 1 } END { exit NR != 5 }' "$said"
result $? "csv has a header and a row a size, of as many columns, and nothing else"
put "json into a file" 0 "over" --json "$dir/out.json" "${quick[@]}"
grep -q '"p999_us"' "$dir/out.json" && grep -q '"cpu_s_per_GB"' "$dir/out.json" &&
    grep -q '"kernel"' "$dir/out.json"
result $? "json has results and the machine"
put "damage is counted" 1 "bytes are wrong" --transport shm+corrupt:nth=3 --check \
    --iters 50 --sizes 64

# Unauthenticated peers: the server reports them and serves the next client.
serve server
for words in 'GET / HTTP/1.0\r\n\r\n' '' 'PbrT\001\000\000\000\377\377\377\377\000\000\000\000'; do
    # shellcheck disable=SC2059 # words are for printf
    (exec 3<>"/dev/tcp/127.0.0.1/$port" && printf "$words" >&3)
done
put "a client after strangers" 0 "200001 B" "127.0.0.1:$port" "${quick[@]}"
served "unknown peers are logged" 0 "does not use the protocol of trib-perf put"

put "a file that cannot be" 2 "cannot write /no/such/place" --csv /no/such/place/x.csv
put "a transport that is none" 1 'no transport is called "smh"' --transport smh
put "a transport that reaches one process" 1 "one process only" --transport loop
put "a misspelt option" 2 "did you mean --sizes?" --sises 8
put "two servers" 2 "one server at a time" allreduce:1 put
timeout 60 "$perf" --check put >"$said" 2>&1
[ $? -eq 2 ] && grep -q "put must be the first argument" "$said"
result $? "an option before put"
TRIB_RANK=0 put "under a launcher" 2 "without a launcher" --sizes 8
put "help" 0 "usage: trib-perf put" --help

export TRIB_BOOT_TIMEOUT_MS=300
put "nobody there" 1 "no trib-perf put at 127.0.0.1 port 1 within" 127.0.0.1:1
serve server
served "nobody comes" 1 "no client connected within 300 ms"
TRIB_BOOT_TIMEOUT_MS=20000 serve server
put "a port in use" 1 "is in use" --listen "127.0.0.1:$port"
put "an address of another host" 1 "is not an address of this host" --listen 192.0.2.1:7100

# A server that dies during the measurement, and a client.
for transport in shm tcp; do
    for victim in server client; do
        TRIB_BOOT_TIMEOUT_MS=20000 serve server
        : >"$said"
        TRIB_BOOT_TIMEOUT_MS=20000 "$perf" put "127.0.0.1:$port" --sizes 8,8 \
            --transport "$transport" --latency --iters 50000000 >"$said" 2>&1 &
        client=$!
        for ((waited = 0; waited < 600; waited++)); do
            ! grep -q "one way" "$said" || break
            sleep 0.05
        done
        if [ "$victim" = server ]; then
            kill -9 "$server"
            wait "$client"
            [ $? -eq 1 ] && grep -qE "127.0.0.1:$port (is lost|closed)" "$said"
            result $? "a server dies over $transport: the client says so"
            wait "$server" 2>/dev/null
        else
            kill -9 "$client"
            wait "$client" 2>/dev/null
            served "a client dies over $transport: the server says so" 1 "the client 127.0.0.1"
        fi
    done
done
refuse_full "a table onto a full disk" "$perf" put --sizes 8 --iters 10
refuse_full "csv onto a full disk" "$perf" put --sizes 8 --iters 10 --csv -
refuse_full "help onto a full disk" "$perf" put --help
finish
