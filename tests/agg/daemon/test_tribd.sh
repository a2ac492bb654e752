#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# tribd as a user starts it: its reaction to settings, which jobs it admits, and sums.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
tribd=$build/agg/daemon/tribd
export TRIB_STOP_TIMEOUT_MS=20000 # no rank on a busy machine counts as stopped

# --- settings ---

expect "help" 0 "usage: tribd" "$tribd" --help
lacks=
while read -r name; do
    grep -qE "^  $name " "$said" || lacks+=" $name"
done < <(sed -n 's/^X(\([a-z_]*\),.*/\1/p' "${abs_top_srcdir:-.}/agg/daemon/tribd_settings.def")
[ -z "$lacks" ] || echo "--help does not name$lacks" >>"$said"
result ${#lacks} "help names every setting"
expect "version" 0 "tribd " "$tribd" --version
expect "an option that does not exist" 2 "unknown option '--nonsense'" "$tribd" --nonsense
expect "--config without a file" 2 "--config" "$tribd" --config
expect "a file that does not exist" 2 "No such file" "$tribd" --config "$dir/none"

refuse_full "help onto a full disk" "$tribd" --help
refuse_full "the version onto a full disk" "$tribd" --version
TRIBD_AUTH=none refuse_full "settings onto a full disk" "$tribd" --check-config

check() { # NAME, expected exit code, words, line of the file...
    printf '%s\n' "${@:4}" >"$dir/mistake"
    expect "$1" "$2" "$3" "$tribd" --config "$dir/mistake" --check-config
}

check "good settings are shown" 0 "slots = 77" "# a comment" "[jobs]" "slots = 77" "auth = none"
check "a comment behind a setting" 0 "slots = 78" "slots = 78 # a comment" "auth = none ; another"
check "a long comment" 0 "slots = 79" "slots = 79 # $(head -c 300 /dev/zero | tr '\0' c)" "auth = none"
check "a # within a value" 0 "key = /a#b" "key = /a#b" "auth = none"
check "a setting that does not exist" 2 'unknown setting "slotz"; did you mean slots' "slotz = 1"
check "a line without =" 2 "line 2" "slots = 1" "nonsense"
check "no number" 2 "slots = many: it must be a number, 1 to" "slots = many"
check "a number and more" 2 "slots = 5k" "slots = 5k"
check "a number beyond its limits" 2 "threads = 257: it must be a number, 0 to 256" "threads = 257"
check "a negative number" 2 "drain_ms = -1" "drain_ms = -1"
check "a level that does not exist" 2 "log is loud" "log = loud"
check "a line too long" 2 "line 2 is longer than 197 characters" \
    "slots = 1" "users = $(head -c 300 /dev/zero | tr '\0' u)"
check "a setting that stands there twice" 2 "slots is set twice" "slots = 1" "jobs = 1" "slots = 2"
check "a value of two lines" 2 "users is set twice" "users = root" "  daemon"
check "an invalid address" 2 'listen: "nowhere" is not host:port' "listen = nowhere"
check "no address" 2 "listen is empty" "listen ="
check "a name that nobody knows" 2 "listen: cannot resolve nohost.invalid" "listen = nohost.invalid:4700"
check "the line of a mistake" 2 'line 2: unknown setting "lisen"; did you mean listen?' "slots = 1" "lisen = *:1"
expect "a folder for a file" 2 "cannot be read: Is a directory" "$tribd" --config "$dir"
TRIB_TRANSPORT=vers expect "a transport for all jobs that is none" 2 'no transport is called "vers"' "$tribd" --check-config
TRIBD_LISTN=x expect "a variable that means nothing" 2 "unknown environment variable TRIBD_LISTN; did you mean TRIBD_LISTEN?" \
    "$tribd" --config "$dir"
check "an invalid address for HTTP" 2 'http: "1:2:3" is not host:port' "http = 1:2:3"
check "a name for HTTP" 2 'HTTP on "agg0": use *, localhost or a numeric' "http = agg0:4780" "auth = none"
check "HTTP everywhere" 0 "http = *:4780" "http = *:4780" "auth = none"
check "a method that does not exist" 2 "rot13" "auth = rot13"
check "a key file that does not exist" 2 "No such file" "auth = key" "key = $dir/none"
cp "$dir/key" "$dir/open"
chmod 644 "$dir/open"
check "a key file that others can read" 2 "$dir/open" "auth = key" "key = $dir/open"
check "key without a file" 2 "key" "auth = key"
check "a previous key that is missing" 2 "cannot open key file $dir/none" "auth = key" "key = $dir/key" \
    "key_previous = $dir/none"
check "a user who does not exist" 2 "users: user nobody_such does not exist" "users = nobody_such"
check "a key that nobody uses" 0 "key has no effect: with this auth" "auth = none" "key = $dir/key"
check "users without MUNGE" 0 "users has no effect" "auth = none" "users = root"
check "quotas of disk without snapshots" 0 "user_disk_files has no effect: snapshots is empty" "auth = none" "disk = 1" \
    "user_disk_files = 1"
check "JSON without the time" 0 "log_time has no effect" "auth = none" "log_format = json" "log_time = no"
TRIBD_SLOTS=zero expect "a wrong variable" 2 "TRIBD_SLOTS=zero" "$tribd" --check-config
TRIBD_USERS=$(head -c 600 /dev/zero | tr '\0' u) expect "a variable too long" 2 \
    "more than 511 characters" "$tribd" --check-config
TRIBD_SLOTS=78 check "a variable goes before the file" 0 "slots = 78" "auth = none" "slots = 77"

name="without munge and a key it does not start"
if TRIBD_AUTH=munge "$tribd" --check-config >/dev/null 2>&1; then
    skip "$name" "munged answers here"
else
    expect "$name" 2 "no authentication method is available" env -u TRIBD_KEY -u TRIBD_AUTH TRIBD_HTTP= \
        TRIBD_LISTEN=127.0.0.1:$((20000 + RANDOM % 12000)) "$tribd"
fi

start_daemon one || finish
start_daemon two || finish
expect "an address that is taken" 1 "${daemon_port[one]}" env TRIBD_HTTP= "$tribd" \
    --config "$dir/one.conf"

# --- jobs ---

run() { # NAME, words, arguments of trib-perf
    expect "$1" 0 "$2" timeout -k 5 60 "$perf" allreduce -n 2 --check --iters 20 --warmup 2 "${@:3}"
    right "$said"
    result $? "$1: right"
}

for transport in shm tcp; do
    for codec in none topk:ratio=0.05 int8; do
        for daemons in "one" "one two"; do
            TRIB_TRANSPORT=$transport service "$daemons" run \
                "$codec over $transport by $daemons" "codec $codec" --codec "$codec" \
                --sizes 8,4K,300004
            ! grep -q "warning" "$said"
            result $? "$codec over $transport by $daemons: no warning is logged"
        done
    done
done
within 10 is_empty one && within 10 is_empty two
result $? "nobody holds anything afterwards"
jobs=$(grep -c "ranks, " "$dir/one.log")
[ "$jobs" = 12 ]
result $? "one has had 12 jobs (it says $jobs)"

! grep -h "warning" "$dir/one.log" "$dir/two.log" | grep -qv "runs as root"
result $? "jobs that end well are no news"

if ! missing curl "/metrics answers" "/ answers"; then
    expect "/metrics answers" 0 "tribd_" curl -sf "http://127.0.0.1:${daemon_http[one]}/metrics"
    expect "/ answers" 0 "<html" curl -sf "http://127.0.0.1:${daemon_http[one]}/"
fi

# --- listeners that are open to all ---

start_daemon wide || finish
kill "${daemon_pid[wide]}"
ended wide 0
sed -i -e 's/127\.0\.0\.1:/*:/' -e 's/^auth = .*/auth = none/' "$dir/wide.conf"
shown=("$dir/wide.log" "$dir/wide.conf")
again wide
result $? "it listens everywhere, for HTTP, too"
within 10 said_by wide "warning: tribd: http: the names of all jobs and users can be read at *:${daemon_http[wide]} without"
result $? "it warns of HTTP for all hosts"
within 10 said_by wide "warning: tribd: auth = none: any host that reaches *:${daemon_port[wide]} may use"
result $? "it warns of jobs that prove nothing, from all hosts"
expect "tribctl finds HTTP everywhere" 0 "" "$build/agg/daemon/tribctl" --config "$dir/wide.conf" status
kill "${daemon_pid[wide]}"
ended wide 0
# --- all transports at once ---

all_sum() { # file that gets the number of operations of each job, if all sum
    status_of one "[.jobs[] | select(.operations > 10)] | length == ${#transports[@]}" &&
        jq '[.jobs[] | {key: .name, value: .operations}] | from_entries' "$dir/status" >"$1"
}
all_go_on() { # all of them at once: each has more than in that file
    all_sum "$dir/now" &&
        jq -es '.[0] as $a | .[1] | to_entries | all(.value > $a[.key])' "$dir/then" "$dir/now" >"$said"
}
uses() { # TRANSPORT: tribd has a job over it, according to its memory and sockets
    case $1 in
    shm) grep -q "memfd:tributary" "/proc/${daemon_pid[one]}/maps" ;;
    ucx) grep -q "libucp" "/proc/${daemon_pid[one]}/maps" ;;
    tcp) true ;;
    esac
}

if ! missing jq "jobs over several transports at once"; then
    transports=(shm tcp)
    if "$build/tools/trib-info" --transports | grep -q "^  ucx  *UCX [0-9]"; then
        transports+=(ucx)
    else
        skip "ucx beside shm and tcp" "no UCX"
    fi
    for transport in "${transports[@]}"; do
        TRIB_TRANSPORT=$transport start_steps "$transport" "one"
    done
    shown=("$dir/status" "$dir/one.log" "$dir/then" "$dir/now")
    within 60 all_sum "$dir/then" && within 20 all_go_on
    result $? "one tribd sums jobs over ${transports[*]} at once"
    for transport in "${transports[@]}"; do
        uses "$transport"
        result $? "it does so over $transport"
        end_steps "$transport" "over $transport, beside the others"
        ! grep -q warning "$dir/$transport.log"
        result $? "over $transport: no warning is logged"
    done
fi

# --- refused jobs ---

without=("the ranks sum without aggregators")
(umask 077; head -c 32 /dev/urandom >"$dir/other")
key=$dir/other service "one" run "a wrong key" "${without[@]}" --sizes 4K
grep -q "warning: service: .*key" "$said"
result $? "a wrong key: it says why"
key=$dir/none service "one" run "no key" "$dir/none" --sizes 4K
daemon_port[absent]=1
service "absent" run "no tribd there" "${without[@]}" --sizes 4K
grep -q "no service at 127.0.0.1:1: .*refused" "$said"
result $? "no tribd there: it says so"
service "one absent" run "one of two is not there" "${without[@]}" --sizes 4K
start_daemon small "slots = 1" "drain_ms = 2000" || finish
service "small" run "no room" "${without[@]}" --sizes 4K
grep -q "needs [0-9]* slots, but the limit of all jobs together is 1:" "$said"
result $? "no room: the message names the resource"
TRIB_TRANSPORT=auto:port=24999 service "one" run "a transport with parameters" "parameters" --sizes 4K

# --- noise ---

shown=("$dir/one.log")
exec 8<>"/dev/tcp/127.0.0.1/${daemon_port[one]}"
for _ in 1 2 3; do
    (exec 7<>"/dev/tcp/127.0.0.1/${daemon_port[one]}" && head -c 70000 /dev/urandom >&7) 2>/dev/null
done
shown=("$said" "$dir/one.log")
service "one" run "beside garbage and a silent connection" "codec none" --sizes 4K
! grep -q warning "$said"
result $? "they do not keep others from the service"
exec 8>&-

"$build/tests/agg/daemon/idle" "${daemon_port[one]}" "$dir/key" >"$said" 2>&1
grep -qF "no JOIN received within 10000 ms" "$said"
result $? "who proves who it is, and asks for nothing, does not keep its place"
"$build/tests/agg/daemon/idle" "${daemon_port[one]}" "$dir/key" together >"$said" 2>&1
result $? "a request in the same segment as STORE_JOIN is answered at once"
"$build/tests/agg/daemon/idle" "${daemon_port[one]}" "$dir/key" crowd >"$said" 2>&1
result $? "clients that have hung up do not delay the stores of others"

# --- SIGHUP ---

reload() { # words that the log must contain afterwards, line of the file...
    printf '%s\n' "listen = 127.0.0.1:${daemon_port[one]}" "auth = key" "key = $dir/key" "threads = 1" \
        "${@:2}" >"$dir/one.conf"
    : >"$dir/one.log"
    kill -HUP "${daemon_pid[one]}"
    within 10 said_by one "$1"
}

shown=("$dir/one.log")
reload "settings reloaded" "users = daemon" "http = 127.0.0.1:${daemon_http[one]}"
result $? "SIGHUP: the settings are read again"
! said_by one "restart"
result $? "SIGHUP: nothing else has changed"
reload "slots, queue: takes effect only after a restart" "slots = 9" "queue = 5" \
    "http = 127.0.0.1:${daemon_http[one]}"
result $? "SIGHUP: settings that it cannot change are logged"
reload "the settings are unchanged: weights: \"ana\" is not user:weight" "weights = bob:2,ana"
result $? "SIGHUP: an invalid weight changes nothing"
reload "settings reloaded" "job_slots = 5" "http = 127.0.0.1:${daemon_http[one]}"
service "one" run "a job with a limit" "codec none" --sizes 4K
grep -q "slots, but the limit of a job is 5" "$said"
result $? "SIGHUP: a new limit of jobs"
reload "the settings are unchanged: users: user nobody_such does not exist" "users = nobody_such"
result $? "SIGHUP: a mistake changes nothing"
reload "the settings are unchanged: " "nonsense"
result $? "SIGHUP: an invalid line changes nothing"
cp "$dir/other" "$dir/key"
reload "settings reloaded"
shown=("$said" "$dir/one.log")
service "one" run "a key that was changed" "codec none" --sizes 4K
! grep -q warning "$said"
result $? "SIGHUP: the new key opens it"
reload "key and key_previous contain the same key" "key_previous = $dir/other"
result $? "SIGHUP: a previous key that is the present one gets a warning"
head -c 32 /dev/urandom >"$dir/key"
reload "settings reloaded" "key_previous = $dir/other" "http = 127.0.0.1:${daemon_http[one]}"
key=$dir/other service "one" run "a job with the previous key" "codec none" --sizes 4K
! grep -q warning "$said" && said_by one "uses the previous key: deploy the new key file"
result $? "SIGHUP: the log says which job has the previous key"
status_of one '.events.previous_key_proofs == 1'
result $? "SIGHUP: /status counts it"
service "one" run "a job with the present key" "codec none" --sizes 4K
! grep -q warning "$said" && status_of one '.events.previous_key_proofs == 1'
result $? "SIGHUP: and no job with the present key"
reload "http: takes effect only after a restart" "log = warn"
: >"$dir/one.log"
service "one" run "a job after log = warn" "codec none" --sizes 4K
! [ -s "$dir/one.log" ]
result $? "SIGHUP: log = warn logs no job"

# --- systemd ---

if ! missing python3 "it tells systemd"; then
    python3 - "$dir/notify" >"$dir/told" <<'PY' &
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(60)
while (word := s.recv(200).decode().split("\n")[0]) != "STOPPING=1":
    print(word, flush=True)
print(word)
PY
    listener=$!
    within 10 test -S "$dir/notify"
    journal=$(stat -c %d:%i "$dir/err" 2>/dev/null || { : >"$dir/err"; stat -c %d:%i "$dir/err"; })
    NOTIFY_SOCKET=$dir/notify JOURNAL_STREAM=$journal TRIBD_HTTP='' TRIBD_AUTH=none \
        TRIBD_LISTEN=127.0.0.1:$((daemon_port[one] + 2)) "$tribd" 2>"$dir/err" &
    job_pid[systemd]=$!
    shown=("$dir/told" "$dir/err")
    within 10 has_lines "$dir/told" 1
    kill -HUP "${job_pid[systemd]}"
    within 10 has_lines "$dir/told" 3
    kill -TERM "${job_pid[systemd]}"
    ended systemd 0
    wait "$listener"
    [ "$(tr '\n' ' ' <"$dir/told")" = "READY=1 RELOADING=1 READY=1 STOPPING=1 " ]
    result $? "it tells systemd"
    grep -q "^<6>tributary: info: tribd: listening" "$dir/err" && ! grep -v "^<[3-7]>" "$dir/err"
    result $? "lines for the journal have priorities"
fi

# --- without descriptors 0 to 2 ---

answers() { # PORT
    (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

daemon_port[closed]=$((daemon_port[one] + 3))
printf '%s\n' "listen = 127.0.0.1:${daemon_port[closed]}" "http =" "auth = key" "key = $dir/key" \
    "threads = 1" "log = debug" >"$dir/closed.conf"
"$tribd" --config "$dir/closed.conf" <&- >&- 2>&- &
daemon_pid[closed]=$!
within 10 answers "${daemon_port[closed]}"
service "closed" run "a tribd whose standard streams are closed" "codec none" --sizes 8,300004
! grep -q "warning" "$said"
result $? "no warning is logged"
kill "${daemon_pid[closed]}"
patience=5 ended closed 0
result $? "and SIGTERM ends it"

kill "${daemon_pid[one]}" "${daemon_pid[two]}" "${daemon_pid[small]}"
for name in one two small; do
    shown=("$dir/$name.log")
    patience=5 ended $name 0
    result $? "SIGTERM ends $name, which has nothing to do"
done
finish
