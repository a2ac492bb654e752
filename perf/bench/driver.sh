#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# driver.sh - the loop of the benches. A bench is a script of this form:
#
#   # NAME.sh - what it compares, and more text for --help
#   . "$(dirname "$0")/driver.sh"
#   quick "TEXT" VARIABLE=VALUE…    what --quick sets
#   options NAME[=DEFAULT]…         its options, of those in `common`; `option` adds others
#   take_arguments "$@"             sets the options' variables, build, out, runs and errors
#   columns=…                       of runs.csv, after round,before,after
#   one_round() { … }               calls contend for each launch; measure repeats it
#   measure                         all rounds, in each of `places`
#   about=…                         a line about the measurement, for the page
#   finish ARGUMENT…                tables by NAME.awk, documents in results/, and their page
# shellcheck disable=SC2034,SC2154 # set by the benches and printf -v
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) # perf/
bench=$(basename "$0" .sh)

# What benches set if they differ. page_rows, if a bench defines it, prints rows for the page instead of runs.csv.
files='runs.csv (all launches), bench.md (tables), errors.log'
tables_file=bench.md
table_variables=() # awk arguments
place=in rewrite='' sample_ms=1 only='' write='' rounds=1 limit=60 # peers.sh reads the first ones
allreduce_run='"collective": "allreduce", "dtype": "f32", "op": "sum"'

# shellcheck source=perf/peers/peers.sh
. "$here/peers/peers.sh"

die() {
    echo "bench: $*" >&2
    exit 2
}

clear_progress() {
    [ ! -t 2 ] || printf '\r\033[K' >&2
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

# --- options ----------------------------------------------------------------------

# Options of several benches: default, value in the help, text, and the variable if it is not the name.
declare -A common=(
    [rounds]='5|N|launches of each program'
    [ranks]='2 4|LIST|such as "2 4"|ranks_list'
    [links]='shm tcp|LIST|transports'
    [hosts]='2 4|LIST|such as "2 4"|hosts_list'
    [rates]="1gbit 10gbit|LIST|rates of each host's link, each way"
    [congestion]='cubic|NAME|congestion control of TCP, such as bbr'
    [sizes]='|LIST|bytes, comma-separated'
    [sample]='50|MS|a sample is as many calls as fit this time|sample_ms'
    [samples]='5|N|samples a size and launch'
    [limit]='60|S|time limit of a launch, in seconds'
    [only]='|LIST|contenders, comma-separated'
    [write]="||also write the tables to perf/results/$bench.md"
)
option_names=()
declare -A variable_of=() value_of=() text_of=()

option() { # NAME DEFAULT VALUE TEXT [VARIABLE]: --NAME VALUE, or a switch that sets "yes" or calls on_NAME
    local variable=${5:-${1//-/_}}
    option_names+=("$1")
    variable_of[$1]=$variable value_of[$1]=$3 text_of[$1]=$4
    printf -v "$variable" %s "$2"
}

options() { # NAME[=DEFAULT]…
    local word default value text variable
    for word; do
        IFS='|' read -r default value text variable <<<"${common[${word%%=*}]}"
        [[ $word != *=* ]] || default=${word#*=}
        option "${word%%=*}" "$default" "$value" "$text" "$variable"
    done
}

quick() { # TEXT VARIABLE=VALUE…
    option quick '' '' "$1"
    quick_sets=("${@:2}")
}
on_quick() {
    local word
    for word in "${quick_sets[@]}"; do printf -v "${word%%=*}" %s "${word#*=}"; done
}

# Print the comment at the top of a bench, and its options.
print_help() {
    local name default
    sed -n '4,${/^# shellcheck/d;/^#/!q;s/^# \{0,1\}//;p}' "$0"
    printf '\n  perf/bench/%s [OPTION]… %sBUILD_DIR OUT_DIR\n\n' "${0##*/}" "${more_arguments:-}"
    for name in "${option_names[@]}"; do
        default=${!variable_of[$name]}
        printf '  --%-17s %s\n' "$name ${value_of[$name]}" "${text_of[$name]}${default:+ [$default]}"
    done
    printf '\nThe files in OUT_DIR are %s.\n' "$files"
}

# Parse the command line; the arguments after the options are passed to take_folders.
take_arguments() { # ARGUMENT…
    local name
    command_line=("$0" "$@")
    while [[ ${1:-} = -* ]]; do
        name=${1#--}
        if [ "$1" = -h ] || [ "$name" = help ]; then
            print_help
            exit 0
        elif [ -n "${value_of[$name]:-}" ]; then
            [ $# -ge 2 ] || die "$1 needs a value"
            printf -v "${variable_of[$name]}" %s "$2"
            shift
        elif declare -F "on_${name//-/_}" >/dev/null; then
            "on_${name//-/_}"
        elif [ -n "${variable_of[$name]:-}" ]; then
            printf -v "${variable_of[$name]}" %s yes
        else
            die "there is no option '$1'; --help lists them"
        fi
        shift
    done
    take_folders "$@"
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
    unset TRIB_CODEC TRIB_ROOT TRIB_RANK TRIB_SIZE TRIB_SERVICE
    [ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

# Return true if `only` is empty or contains this contender, or its part after the last /.
wanted() { # CONTENDER
    [ -z "$only" ] || [[ ,$only, == *,$1,* || ,$only, == *,${1##*/},* ]]
}

csv_columns() { # NAME…: print these columns of a csv; a text in quotation marks may have commas
    awk -F, -v names="$*" '{ gsub(/"[^"]*"/, "text") }
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; n = split(names, name, " "); next }
        { line = $at[name[1]]; for (i = 2; i <= n; i++) line = line "," $at[name[i]]; print line }'
}

# --- launches ---------------------------------------------------------------------

# Run a function with all functions and options; after `limit` seconds terminate its process group.
guarded() { # FUNCTION ARGUMENT…
    # shellcheck disable=SC2046 # names
    export -f $(compgen -A function)
    export here build out place rewrite sample_ms "${variable_of[@]}"
    # shellcheck disable=SC2016 # the inner shell expands them
    timeout -k 5 "$limit" bash -c 'set -euo pipefail; "$@"' guarded "$@"
}

# Contenders that exceeded `limit` seconds; they are not launched again.
declare -A late=()

# Ctrl-C ends the current launch and skips the remaining ones, so the tables contain the launches so
# far. A second one ends the script.
interrupted='' launches=0 first_at=$SECONDS launch_pid=''
interrupt() {
    trap - INT
    interrupted=yes
    echo "bench: interrupted; interrupt again to exit without tables" >&2
    [ -z "$launch_pid" ] || end_launch "$launch_pid"
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

# Run a launch that Ctrl-C can end, with its rows in OUT_DIR/launch.csv. Set `status`.
run_launch() { # COMMAND…
    status=0
    "$@" >"$out/launch.csv" 2>>"$errors" &
    launch_pid=$!
    wait "$launch_pid" || status=$?
    launch_pid=''
}

# Run one launch between two probes of the distance of the cores. Append its rows, prefixed with the
# round and the results of both probes, to runs, and its other output to errors. KIND names the
# launch, the same in all rounds.
launch_probed() { # ROUND KIND COMMAND…
    local round=$1 kind=$2 before after rows status began=$SECONDS
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
    run_launch "$@"
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

# Launch a contender in this round, unless --only excludes it, or only count it.
contend() { # CONTENDER KIND COMMAND…
    wanted "$1" || return 0
    if [ -n "$counting" ]; then
        per_round=$((per_round + 1))
    else
        launch_probed "$round" "${@:2}"
    fi
}

# Run all rounds in each of `places`, interleaved. The words of a place are read into the variables
# `place_names`; open_place and close_place begin and end it.
places=(here) place_names=spot counting=''
open_place() { :; }
close_place() { :; }
# shellcheck disable=SC2229,SC2086 # names
enter() { read -r $place_names <<<"$1"; }
measure() {
    local spot per_round=0
    echo "round,before,after,$columns" >"$runs"
    counting=yes round=0
    for spot in "${places[@]}"; do
        enter "$spot"
        one_round
    done
    counting='' planned=$((launches + rounds * per_round))
    for spot in "${places[@]}"; do
        [ -z "$interrupted" ] || break
        enter "$spot"
        open_place
        for ((round = 1; round <= rounds; round++)); do one_round; done
        close_place
    done
    clear_progress
}

# --- tables and pages -------------------------------------------------------------

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

machine_line() {
    local model
    model=$(sed -n '/^model name/{s/.*: //p;q}' /proc/cpuinfo)
    echo "Machine: ${model:-unknown processor}, $(env -u OMP_NUM_THREADS nproc) cores, Linux $(uname -r)."
}

# Print the tables of the launches.
tables() {
    awk "${table_variables[@]}" -f "$here/bench/tables.awk" -f "$here/bench/$bench.awk" "$runs"
}

# Make and show the page of tables. Set table_status to the status of tables.
make_tables() {
    table_status=0
    {
        machine_line
        echo "$about"
        absent_lines
        echo
        tables
    } | cat -s >"$out/$tables_file" || table_status=$?
    show_tables "$out/$tables_file"
}

write_tables() { write_section "$bench" "$out/$tables_file"; }

# The end of a bench: the tables, with --write also in perf/results/NAME.md, documents and their page.
finish() { # ARGUMENT of write_page…
    make_tables
    [ -z "$write" ] || write_tables
    echo "written to $out: $files" >&2
    [ $# = 0 ] || write_page "$@"
    return "$table_status"
}

# Print the rates of iperf3 as limits; by columns rate, contender, ranks and p50_us of runs.csv.
iperf_limits() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["contender"] == "iperf3" { print $at["rate"] "/" $at["ranks"] "," $at["p50_us"] / 8 }' "$runs" |
        awk -F, '{ sum[$1] += $2; n[$1]++ }
            END { for (key in sum) print key ",link (iperf3)," 0 "," sum[key] / n[key] }' >>"$out/limits.csv"
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
        printf '%s%s' "$between" "$(sed 's/["\\]/\\&/g; s/.*/"&"/' <<<"$word")"
        between=', '
    done
    echo ']'
}

# Write documents like trib-perf --json to results/, make a page of them with trib-perf report, and print its path.
# Arguments: variables of results.awk, and run=TEXT. `page` replaces bench.html, if it is set.
write_page() { # VARIABLE=VALUE…
    local to=$out/results/ head run='' word arguments=() found page=${page:-$out/bench.html} rows=$runs
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
    if declare -F page_rows >/dev/null; then
        rows=$out/rows.csv
        page_rows >"$rows"
    fi
    found=$(RESULTS_HEAD=$head RESULTS_RUN=$run awk -v to="$to" "${arguments[@]}" -f "$here/bench/tables.awk" \
        -f "$here/bench/results.awk" "$out/limits.csv" "$rows")
    [ "$rows" = "$runs" ] || rm "$rows"
    if [ -z "$found" ]; then
        echo "no page: nothing was measured" >&2
        return
    fi
    mapfile -t found <<<"$found"
    page_of "${found[@]}"
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
