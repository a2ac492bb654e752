#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# driver.sh - functions shared by the bench scripts. They source it, and set `here` (perf/),
# `rounds`, `limit` (seconds per launch), `only`, `missing` (contenders not measured) and
# `settings` (for take_arguments).
# shellcheck disable=SC2154 # set by the scripts

die() {
    echo "bench: $*" >&2
    exit 2
}

# Print the progress, and the estimated remaining time if `planned` is set to the number of launches:
# the mean of the previous launches for each.
say() {
    local left=''
    if [ -n "${planned:-}" ] && [ "$launches" -gt 0 ] && [ "$planned" -gt "$launches" ]; then
        left=$(((SECONDS - first_at) * (planned - launches) / launches))
        left=", about $((left / 60)) min $((left % 60)) s left"
    fi
    if [ -t 2 ]; then printf '\r\033[K%s' "$*$left" >&2; else echo "$*" >&2; fi
}

# Parse the command line of the sourcing script. --NAME VALUE sets the variable settings[NAME];
# --NAME without a value calls on_NAME, with _ for -. The arguments after the options are
# passed to take_folders.
take_arguments() { # ARGUMENT…
    local name
    command_line=("$0" "$@")
    while [ $# -gt 0 ]; do
        case $1 in
        --help | -h)
            help_of "$0"
            exit 0
            ;;
        -*) name=${1#--} ;;
        *) break ;;
        esac
        if [ -n "${settings[$name]:-}" ]; then
            [ $# -ge 2 ] || die "$1 needs a value"
            printf -v "${settings[$name]}" %s "$2"
            shift
        elif declare -F "on_${name//-/_}" >/dev/null; then
            "on_${name//-/_}"
        else
            die "there is no option '$1'; --help lists them"
        fi
        shift
    done
    take_folders "$@"
}

# Return true if `only` is empty or contains this contender, or its part after the last /.
wanted() { # CONTENDER
    [ -z "$only" ] || [[ ,$only, == *,$1,* || ,$only, == *,${1##*/},* ]]
}

# Take the folders at the end of the command line. Set build (has perf/probe), out, runs (rows
# of all launches) and errors (error output).
take_folders() { # BUILD_DIR OUT_DIR
    [ $# -eq 2 ] || die "BUILD_DIR and OUT_DIR are needed; --help tells more"
    [ -x "$1/perf/trib-perf" ] || die "$1/perf/trib-perf is missing: build first"
    build=$(cd "$1" && pwd)
    mkdir -p "$2"
    out=$(cd "$2" && pwd)
    runs=$out/runs.csv
    errors=$out/errors.log
    : >"$errors"
    echo "key,name,bytes,GBps" >"$out/limits.csv"
}

# Print the comment at the top of a script, from the fourth line on.
help_of() { # FILE
    sed -n '4,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$1"
}

# Run an exported function; after `limit` seconds terminate its process group.
guarded() { # FUNCTION ARGUMENT…
    # shellcheck disable=SC2016 # the inner shell expands them
    timeout -k 5 "$limit" bash -c 'set -euo pipefail; "$@"' guarded "$@"
}

# Print the number of words.
count_of() { # WORD…
    echo $#
}

# Contenders that exceeded `limit` seconds; they are not launched again.
declare -A late=()

# Ctrl-C ends the current launch and skips the remaining ones, so the tables contain the launches so
# far. A second one ends the script.
interrupted='' launches=0 first_at=$SECONDS
interrupt() {
    trap - INT
    interrupted=yes
    echo "bench: interrupted; interrupt again to exit without tables" >&2
    [ -z "${launch_pid:-}" ] || end_launch "$launch_pid"
}

# End a launch and its children: `timeout` forwards the signal to its process group.
end_launch() { # PID
    local child children tries
    children=$(ps -o pid= --ppid "$1")
    for child in $children; do kill -TERM "$child" 2>/dev/null || true; done
    kill -TERM "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
    for child in $children; do # each removes its files and processes
        for ((tries = 0; tries < 50; tries++)); do
            kill -0 "$child" 2>/dev/null || break
            sleep 0.1
        done
    done
}

# Run one launch between two probes of the distance of the cores. Append its rows, prefixed with the
# round and the results of both probes, to runs, and its other output to errors. KIND names the
# launch, the same in all rounds.
launch_probed() { # ROUND KIND COMMAND…
    local round=$1 kind=$2 before after rows status=0 began=$SECONDS
    local what="round $1 of $rounds, $2"
    shift 2
    [ -z "$interrupted" ] || return 0
    [ "$launches" -gt 0 ] || first_at=$SECONDS
    trap interrupt INT
    if [ -n "${late[$kind]:-}" ]; then
        say "$what: left out, as it took too long before"
        return
    fi
    before=$("$build/perf/probe") || [ -n "$interrupted" ]
    [ -z "$interrupted" ] || return 0
    say "$what (cores: $before)"
    echo "## $what" >>"$errors"
    "$@" >"$out/launch.csv" 2>>"$errors" &
    launch_pid=$!
    wait "$launch_pid" || status=$?
    launch_pid=''
    [ -z "$interrupted" ] || return 0 # half a launch is none
    rows=$(cat "$out/launch.csv")
    rm -f "$out/launch.csv"
    if [ "$status" != 0 ] && [ $((SECONDS - began)) -ge "$limit" ]; then
        late[$kind]=$limit
        echo "## $what: not finished after $limit s, not launched again" |
            tee -a "$errors" >&2
    elif [ "$status" != 0 ]; then
        echo "## $what failed: exit $status" | tee -a "$errors" >&2
    fi
    after=$("$build/perf/probe") || [ -n "$interrupted" ]
    [ -z "$interrupted" ] || return 0
    launches=$((launches + 1))
    [ -z "$rows" ] ||
        awk -F , -v head="$round,${before#* },${after#* }" -v errors="$errors" \
            'NF < 3 || / / { print >>errors; next } { print head "," $0 }' \
            <<<"$rows" >>"$runs"
}

# Print a line for each contender missing from the tables.
absent_lines() {
    local name
    [ -z "$interrupted" ] || echo "Interrupted: the tables contain $launches launches."
    for name in "${missing[@]}"; do echo "Not measured here: $name."; done
    for name in "${!late[@]}"; do echo "Ended after ${late[$name]} s: $name."; done
}

# Replace the text between the lines "<!-- bench NAME begin…" and "<!-- bench NAME end…" of a page by a
# file. The page is perf/results/WORD.md, where WORD is the first word of NAME, if none is given.
write_section() { # NAME FILE [PAGE]
    local title=${3:-perf/results/${1%% *}.md} new=$out/page.md
    local page=$here/../$title
    [ -z "$interrupted" ] || die "interrupted: $title stays as it is"
    [ "$(grep -c "^<!-- bench $1 \(begin\|end\)" "$page")" = 2 ] ||
        die "$title has no place for '$1'"
    {
        sed "/^<!-- bench $1 begin/q" "$page"
        cat "$2"
        sed -n "/^<!-- bench $1 end/,\$p" "$page"
    } >"$new"
    cp "$new" "$page"
    rm "$new"
    echo "wrote $1 into $title" >&2
}

# Print a file with Markdown tables, fitted to the terminal if there is one.
show_tables() { # FILE
    local columns
    if [ -t 1 ] && columns=$(stty size <&1 2>/dev/null | cut -d ' ' -f 2) && [ "${columns:-0}" -gt 0 ]; then
        LC_ALL=C awk -v width="$columns" -f "$here/bench/show.awk" "$1"
    else
        cat "$1"
    fi
}

# Show the tables of bench.md and, with --write, copy them into perf/results/NAME.md.
tell_tables() { # NAME
    show_tables "$out/bench.md"
    [ -z "$write" ] || write_section "$1" "$out/bench.md"
    echo "written to $out: bench.md, runs.csv, errors.log" >&2
}

# shellcheck disable=SC2034 # the scripts give it to write_page
allreduce_run='"collective": "allreduce", "dtype": "f32", "op": "sum"'

# Print the rates of iperf3 as limits; by columns rate, contender, ranks and p50_us of runs.csv.
iperf_limits() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["contender"] == "iperf3" { print $at["rate"] "/" $at["ranks"] "," $at["p50_us"] / 8 }' "$runs" |
        awk -F, '{ sum[$1] += $2; n[$1]++ }
            END { for (key in sum) print key ",link (iperf3)," 0 "," sum[key] / n[key] }' >>"$out/limits.csv"
}

json_text() { # TEXT: in quotation marks
    sed 's/["\\]/\\&/g; s/.*/"&"/' <<<"$1"
}

# The common beginning of all result documents: from trib-perf, which describes the machine, and the
# command line.
results_head() {
    local said word between=''
    said=$("$build/perf/trib-perf" codec none --sizes 4096 --iters 1 --json - 2>>"$errors") || return 1
    [[ $said == *'"machine"'* ]] || return 1
    sed -n '/^  "\(format\|tributary\|time\)"/p; /^  "machine"/,/^  "run"/{/^  "run"/d; p}' <<<"$said"
    printf '  "argv": ['
    for word in "${command_line[@]}"; do
        printf '%s%s' "$between" "$(json_text "$word")"
        between=', '
    done
    echo ']'
}

# The last step of a bench: write documents like trib-perf --json to results/, make a page of them with
# trib-perf report, and print its path. Arguments: variables of results.awk, and run=TEXT.
# `rows` replaces runs.csv, and `page` replaces bench.html, if they are set.
write_page() { # VARIABLE=VALUE…
    local to=$out/results/ head run='' word arguments=() files documents page=${page:-$out/bench.html}
    for word; do
        case $word in run=*) run=${word#run=} ;; *) arguments+=(-v "$word") ;; esac
    done
    [ -z "$interrupted" ] || run+=${run:+, }"\"interrupted\": true"
    mkdir -p "$to"
    [ "${page##*/}" = bench.html ] || to+=$(basename "$page" .html)-
    rm -f "$to"[0-9][0-9][0-9].json
    if ! head=$(results_head); then
        echo "no page: trib-perf codec failed, see $errors" >&2
        return
    fi
    documents=$(RESULTS_HEAD=$head RESULTS_RUN=$run awk -v to="$to" "${arguments[@]}" -f "$here/bench/medians.awk" \
        -f "$here/bench/results.awk" "$out/limits.csv" "${rows:-$runs}")
    if [ -z "$documents" ]; then
        echo "no page: nothing was measured" >&2
        return
    fi
    mapfile -t files <<<"$documents"
    page_of "${files[@]}"
}

# Make the page of documents and print its path, or the reason why there is none.
page_of() { # FILE…
    local to=${page:-$out/bench.html}
    if [ -e "${1:-}" ] && "$build/perf/trib-perf" report "$@" -o "$to" 2>>"$errors"; then
        echo "page: $to" >&2
    else
        echo "no page: trib-perf report failed, see $errors" >&2
    fi
}

# The end of a bench: write bench.md with the machine, a line about the measurement, and the tables
# that an awk program makes from the launches.
tables_by_awk() { # NAME LINE
    [ ! -t 2 ] || printf '\r\033[K' >&2
    {
        machine_line
        echo "$2"
        absent_lines
        awk -f "$here/bench/medians.awk" -f "$here/bench/$1.awk" "$runs"
    } >"$out/bench.md"
    tell_tables "$1"
}

# Print the congestion control of new connections.
congestion() {
    cat /proc/sys/net/ipv4/tcp_congestion_control
}

machine_line() {
    local model
    model=$(sed -n '/^model name/{s/.*: //p;q}' /proc/cpuinfo)
    echo "Machine: ${model:-unknown processor}, $(env -u OMP_NUM_THREADS nproc) cores, Linux $(uname -r)."
}
