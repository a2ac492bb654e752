#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The status output read by its consumers: Prometheus and a browser.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/harness/seen.sh"

pids=()
at_exit() {
    exec 9>&-
    [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null
    wait
}

# It runs until its input ends, which is when this script exits for any reason.
mkfifo "$dir/input"
"$build/tests/agg/metrics/serve" <"$dir/input" >"$dir/port" 2>"$dir/serve.err" 9>&- &
server=$!
exec 9>"$dir/input"
if ! within 30 has_lines "$dir/port" 1; then
    wait "$server"
    [ $? != 77 ] || skip_all "built without libmicrohttpd"
    result 1 "the sample service starts: $(cat "$dir/serve.err")"
    finish
fi
port=$(cat "$dir/port")

# --- Prometheus ---

if ! missing prometheus "Prometheus scrapes it" "the evil name comes through"; then
    shown=("$said" "$dir/prometheus.log")
    start_prometheus "$port" && within 60 scraped 'up{job="tribd"}' '=> 1 @'
    result $? "Prometheus scrapes it"
    pids+=("$prometheus")
    scraped 'tribd_job_received_bytes_total{user="eve"}' '<img src=x onerror='
    result $? "the evil name comes through"
    scraped 'tribd_job_lag_seconds_bucket{name="train-7",le="0.03"}' '=> 121 @'
    result $? "a histogram of lags has what was counted"
    shown=("$said")
fi

# --- a browser ---

in_page() { # NAME, extended regular expression
    grep -qE -- "$2" "$said"
    result $? "$1"
}

if ! missing chromium "the page has a row for each job"; then
    shown=("$dir/chromium.err" "$said")
    browse "$port" --virtual-time-budget=7000 --dump-dom >"$said"
    in_page "the page has a row for a job" '<tr data-job="1"><td class="name" title="train-7"><span class="faint">1 </span>train-7<'
    in_page "it says what is stuck, and for whom it waits" \
        'class="now bad">operation 812 stuck for [0-9.]+ (s|min) in transfer, waits for rank 2<'
    in_page "it shows who waits in the queue" '<tr data-job="3">.*position 1, '
    in_page "a name is text, whatever stands in it" '<tr data-job="2"><td class="name"[^>]*><span class="faint">2 </span>&lt;img src=x onerror='
    ! grep -q '<title>pwned' "$said"
    result $? "a name is not run"
    in_page "it draws the throughput" '<polyline points="[0-9.]+,[0-9.]+ '
    in_page "it names the straggler" 'rank 2</span>'
fi

finish
