# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Prometheus and a browser, for tests of a service's pages. Source it after tap.sh.
# shellcheck disable=SC2154,SC2034 # of tap.sh, and for it
prometheus=

prometheus_at() { # PORT: wait until it answers or has ended
    promtool query instant "http://127.0.0.1:$1" up >"$said" 2>&1 ||
        ! kill -0 "$prometheus" 2>/dev/null
}

start_prometheus() { # PORT to scrape; sets $prometheus, its process, and $prometheus_port
    local try
    cp "${abs_top_srcdir:-.}/contrib/prometheus/tribd.rules.yml" "$dir/"
    cat >"$dir/prometheus.yml" <<YML
global: {evaluation_interval: 1s}
rule_files: [tribd.rules.yml]
scrape_configs:
  - job_name: tribd
    scrape_interval: 1s
    static_configs: [{targets: ["127.0.0.1:$1"]}]
YML
    for try in 1 2 3 4 5; do
        prometheus_port=$((20000 + RANDOM % 10000))
        prometheus --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/data" \
            --web.listen-address="127.0.0.1:$prometheus_port" >"$dir/prometheus.log" 2>&1 9>&- &
        prometheus=$!
        within 60 prometheus_at "$prometheus_port" && kill -0 "$prometheus" 2>/dev/null && return 0
        wait "$prometheus"
        echo "# no Prometheus at port $prometheus_port, try $try"
    done
    return 1
}

scraped() { # QUERY, extended regular expression of the answer
    promtool query instant "http://127.0.0.1:$prometheus_port" "$1" >"$said" 2>&1 &&
        grep -qE -- "$2" "$said"
}

browse() { # PORT, OPTION...: run chromium, which needs its own folder, and no sandbox as root
    HOME=$dir timeout -k 5 $((120 * slow)) chromium --headless --no-sandbox --disable-gpu \
        --disable-dev-shm-usage --no-first-run --user-data-dir="$dir/chromium" "${@:2}" \
        "http://127.0.0.1:$1/" 2>"$dir/chromium.err" 9>&-
}
