#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Reports of trib-perf on results: compare, report, --compare, --plot and --html.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=$build/perf/trib-perf

document() { # median of 8 bytes, of 1 MiB, format; prints a result of two sizes
    cat <<JSON
{"format": ${3:-1}, "tributary": "0.1.0", "time": "2026-01-02T03:04:05Z", "argv": ["trib-perf", "allreduce"],
 "machine": {"host": "a <b>", "cpu": "c & d"}, "settings": {"TRIB_SPIN_US": {"value": "5", "unit": "µs", "origin": "environment"}},
 "run": {"collective": "allreduce", "dtype": "f32", "op": "sum", "codec": "none", "ranks": 2},
 "results": [
  {"bytes": 8, "iters": 9, "p25_us": $1, "p50_us": $1, "p75_us": $1, "p99_us": $1, "min_us": $1, "algbw_GBps": 1, "busbw_GBps": 1},
  {"bytes": 1048576, "iters": 9, "p25_us": $2, "p50_us": $2, "p75_us": $2, "p99_us": $2, "min_us": $2, "algbw_GBps": 9, "busbw_GBps": 9}]}
JSON
}
document 0.5 100 >"$dir/old.json"
document 0.5 130 >"$dir/slow.json"
document 0.5 100 2 >"$dir/other.json"
sed 's/"bytes": /"bytes": 1/' "$dir/old.json" >"$dir/sizes.json"
echo '{"format": 1, "tributary": "0.1.0", "results": []}' >"$dir/none.json"
echo '{"a": 1}' >"$dir/strange.json"
head -c 300 "$dir/old.json" >"$dir/half.json"

compare() { # NAME, expected exit code, required words of the output, arguments
    expect "$1" "$2" "$3" "$perf" compare "${@:4}"
}
compare "the same" 0 "2 rows: 0 slower beyond the spread, 0 faster" "$dir/old.json" "$dir/old.json" --fail-above 1.1
compare "slower, without a limit" 0 "2 rows: 1 slower beyond the spread, 0 faster" "$dir/old.json" "$dir/slow.json"
grep -qE '^ +1 MiB +100\.0 +130\.0 +1\.30 +0 %  slower$' "$said"
result $? "its row says how much"
compare "slower than the limit" 1 "1 row is slower than 1.2 times $dir/old.json" "$dir/old.json" "$dir/slow.json" --fail-above 1.2
compare "slower, within the limit" 0 "1 slower beyond the spread" "$dir/old.json" "$dir/slow.json" --fail-above 1.4
compare "faster" 0 "0 slower beyond the spread, 1 faster" "$dir/slow.json" "$dir/old.json" --fail-above 1
sed 's/"ranks": 2/"ranks": 4/; s/"value": "5"/"value": "6"/' "$dir/old.json" >"$dir/more.json"
compare "what was not alike" 0 "differs: ranks 2 and 4" "$dir/old.json" "$dir/more.json"
grep -qF 'differs: TRIB_SPIN_US "5" and "6"' "$said"
result $? "settings, too"
awk 'length > 80 && !/^(old|new): / { exit 1 }' "$said"
result $? "it fits 80 columns"
compare "no size in common" 2 "no row in common" "$dir/old.json" "$dir/sizes.json"
compare "half a document" 2 "half.json is not JSON: line" "$dir/old.json" "$dir/half.json"
compare "a document of another kind" 2 "is not a result of trib-perf" "$dir/strange.json" "$dir/old.json"
compare "a document of another format" 2 "has format 2" "$dir/other.json" "$dir/old.json"
compare "no results" 2 "none.json has no results" "$dir/none.json" "$dir/old.json"
compare "no such file" 2 "cannot read $dir/absent.json: No such file" "$dir/old.json" "$dir/absent.json"
compare "a folder" 2 "$dir is not JSON" "$dir/old.json" "$dir"
compare "one file" 2 "OLD.json NEW.json" "$dir/old.json"
compare "three files" 2 "compare takes two files" a b c
compare "a limit below 1" 2 "is not a number of at least 1" "$dir/old.json" "$dir/old.json" --fail-above 0.5
refuse_full "a comparison onto a full disk" "$perf" compare "$dir/old.json" "$dir/old.json"

# --- after a measurement ---

sum=(allreduce -n 2 --sizes "8,1M" --iters 3 --warmup 1)
expect "a measurement beside a file" 0 "2 rows:" "$perf" "${sum[@]}" --compare "$dir/old.json" --json "$dir/new.json"
missing jq "cores are those before ranks were bound" ||
    expect "cores are those before ranks were bound" 0 "" jq -e ".machine.cores_allowed == $(nproc)" "$dir/new.json"
compare "its file is compared with itself" 0 "2 rows: 0 slower beyond the spread, 0 faster" "$dir/new.json" "$dir/new.json"
document 0.000001 0.000001 >"$dir/quick.json"
expect "a measurement that is too slow" 1 "2 rows are slower than 1.1 times" \
    "$perf" "${sum[@]}" --compare "$dir/quick.json" --fail-above 1.1
"$perf" "${sum[@]}" --compare "$dir/old.json" --csv - 2>"$said" | awk 'END { exit NR != 3 }' && grep -q "2 rows:" "$said"
result $? "beside csv on standard output it goes to standard error"
expect "nothing is measured where the file is missing" 2 "cannot read $dir/absent.json" \
    "$perf" "${sum[@]}" --compare "$dir/absent.json"
! grep -q "1 MiB" "$said"
result $? "and no row is printed"
expect "a limit of nothing" 2 "--fail-above requires --compare" "$perf" "${sum[@]}" --fail-above 1.1
expect "compare is no second word" 2 "compare must be the first argument" "$perf" -n 2 compare
LC_ALL=C expect "bars in ASCII" 0 "time: # up to p50, . on to p99" "$perf" "${sum[@]}" --plot
grep -qE '^ +1 MiB +[0-9.]+  #+' "$said" && ! sed 1,3d "$said" | LC_ALL=C grep -q '[^ -~]'
result $? "and nothing else"
if locale -a | grep -qix 'c.utf-\?8'; then
    LC_ALL=C.UTF-8 expect "bars in blocks" 0 "time: █ up to p50, ░ on to p99" "$perf" "${sum[@]}" --plot
else
    skip "bars in blocks" "there is no locale C.UTF-8"
fi

# --- pages ---

report() { # NAME, expected exit code, required words of the output, arguments
    expect "$1" "$2" "$3" "$perf" report "${@:4}"
}
well_formed() { # NAME, FILE
    missing xmllint "$1" && return
    xmllint --noout "$2" >"$said" 2>&1 && ! grep -qE '<script|src=|@import|url\(' "$2"
    result $? "$1: well-formed, and needs nothing else"
}
report "a page of one file" 0 "" "$dir/old.json" -o "$dir/one.html"
well_formed "a page of one file" "$dir/one.html"
grep -qF "a &lt;b&gt;" "$dir/one.html" && grep -qF "TRIB_SPIN_US=5 (environment)" "$dir/one.html"
result $? "it has machine and settings"
"$perf" codec int8 int4 topk:ratio=0.01 natural onebit --sizes 16K --iters 1 --json "$dir/codec.json" >"$said" 2>&1
report "a page of all kinds" 0 "" "$dir/old.json" "$dir/slow.json" "$dir/more.json" "$dir/codec.json" -o "$dir/all.html"
well_formed "a page of all kinds" "$dir/all.html"
# All kinds of charts: speed-ups, scaling, limits, bars, timelines, errors.
i=0
for ranks in 2 4 16; do
    for rate in 1gbit 10gbit; do
        i=$((i + 1))
        cat >"$dir/runs-$i.csv" <<CSV
rate,contender,ranks,bytes,p50_us,nmse,wire_bytes
$rate,none,$ranks,25000000,$((40000 / ${rate%gbit} + ranks)),0,$((50000000 - 50000000 / ranks))
$rate,int8:result=requantised,$ranks,25000000,$((10000 / ${rate%gbit} + 4000 + ranks)),0.0001,$((12500000 - 12500000 / ranks))
$rate,topk:ratio=0.01,$ranks,25000000,$((1000 / ${rate%gbit} + ranks)),0.9,1000000
$rate,gloo,$ranks,25000000,50000,,
CSV
    done
done
awk 'NR == 1 || !/^rate/' "$dir"/runs-*.csv >"$dir/runs.csv"
echo "key,name,bytes,GBps" >"$dir/limits.csv"
RESULTS_HEAD=$(sed -n 's/^{\(.*\),$/\1/p' "$dir/old.json") RESULTS_RUN='"collective": "allreduce"' awk -v to="$dir/across" \
    -v split_by="rate ranks" -v name=contender -v own='^[^g]' -v key=codec -f "${abs_top_srcdir:-.}/perf/bench/tables.awk" \
    -f "${abs_top_srcdir:-.}/perf/bench/results.awk" "$dir/limits.csv" "$dir/runs.csv" >"$dir/names" 2>"$said"
[ "$(wc -l <"$dir/names")" = 6 ]
result $? "launches of a bench become documents"
expect "a measurement over a link of a known rate" 0 "" "$perf" allreduce -n 2 --sizes 64K,1M --iters 2 --warmup 1 --overlap \
    --codec int8 --link 40gbit --json "$dir/link.json"
mapfile -t across <"$dir/names"
report "a page of every chart" 0 "" "${across[@]}" "$dir/link.json" "$dir/codec.json" -o "$dir/every.html"
well_formed "a page of every chart" "$dir/every.html"
grep -qF "int8:result=requantised, 2 ranks: pays up to 6.68 Gbit/s" "$dir/every.html"
result $? "it says up to which rate a codec pays"
for words in "<h2>Scaling</h2>" "link, 10 Gbit/s" "computing by the same thread" "<b>nmse</b>" "gloo: 50 ms"; do
    grep -qF "$words" "$dir/every.html" || echo "no $words" >>"$said"
done
! grep -q "^no " "$said"
result $? "and has all the others"
expect "an invalid rate" 2 "is not a rate such as 10gbit" "$perf" "${sum[@]}" --link 10
report "a page on standard output" 0 "<h1>allreduce f32 sum, 2 ranks</h1>" "$dir/old.json" --output=-
report "no output" 2 "-o FILE" "$dir/old.json"
report "no file" 2 "RESULTS.json -o" -o "$dir/no.html"
report "half a document" 2 "half.json is not JSON" "$dir/old.json" "$dir/half.json" -o "$dir/no.html"
[ ! -e "$dir/no.html" ]
result $? "nothing is written then"
report "a page where there is no folder" 1 "cannot write $dir/none/a.html" "$dir/old.json" -o "$dir/none/a.html"
refuse_full "a page onto a full disk" "$perf" report "$dir/old.json" -o -
expect "a measurement with a page" 0 "1 MiB" "$perf" "${sum[@]}" --html "$dir/new.html" --compare "$dir/old.json"
well_formed "a measurement with a page" "$dir/new.html"
expect "nothing is measured where the page cannot be" 2 "cannot write $dir/none/a.html" "$perf" "${sum[@]}" --html "$dir/none/a.html"
expect "a page is no standard output" 2 "--html requires a file name" "$perf" "${sum[@]}" --html -

# --- peers ---

mkdir "$dir/peers" "$dir/sick"
cat >"$dir/peers/run-peer.sh" <<'SH'
#!/bin/sh
[ "$1" = build ] && printf 'one\tOne 1.2\nother\tOther\n' && exit
echo "$*" >>"$(dirname "$0")/launches"
round=$(grep -c " $3 " "$(dirname "$0")/launches")
echo "$3,$4,8,3,1,$((100 * round)).5,1.5,900"
echo "a line that is no row"
echo "$3,$4,1048576,3,1,4000,3000,5000"
SH
sed 's/^echo ".3,.*/exit 1/' "$dir/peers/run-peer.sh" >"$dir/sick/run-peer.sh"
chmod +x "$dir/peers/run-peer.sh" "$dir/sick/run-peer.sh"
peers=("$perf" "${sum[@]}" --sample 2ms --rewrite)
expect "peers in turns" 0 "3 launches of each, in turns with One 1.2, Other" \
    "${peers[@]}" --peers="$dir/peers" --json "$dir/peers.json" --html "$dir/peers.html"
grep -qE '^ +8 B +[0-9.]+ +200\.5 +[0-9.]+ +200\.5 +[0-9.]+$' "$said" && awk 'length > 80 { exit 1 }' "$said"
result $? "its table has the median of three launches, in 80 columns"
[ "$(awk '{ $2 = ""; print }' "$dir/peers/launches" | paste -sd ';')" = \
    "launch  one 2 8,1048576 3 2 out rewrite;launch  other 2 8,1048576 3 2 out rewrite;launch  one 2 8,1048576 3 2 out rewrite;launch  other 2 8,1048576 3 2 out rewrite;launch  one 2 8,1048576 3 2 out rewrite;launch  other 2 8,1048576 3 2 out rewrite" ]
result $? "each was launched three times, with the same options"
well_formed "the page of peers" "$dir/peers.html"
grep -q "time relative to <b>Tributary</b>" "$dir/peers.html" && grep -q "One 1.2, 1 MiB: 4 ms" "$dir/peers.html"
result $? "peers stand in it"
missing jq "peers stand in json" || expect "peers stand in json" 0 "One 1.2 2 200.5" jq -r \
    '.peers[0] | "\(.name) \(.results | length) \(.results[0].p50_us)"' "$dir/peers.json"
compare "peers are no part of a comparison" 0 "2 rows: 0 slower" "$dir/peers.json" "$dir/peers.json"
expect "a peer that fails" 1 "--peers: One 1.2 failed" "${peers[@]}" --peers="$dir/sick"
expect "no peers" 2 "there is no run-peer.sh in $dir/none" "${peers[@]}" --peers="$dir/none"
expect "peers of another type" 2 "--peers requires allreduce -n RANKS with f32 and sum" "${peers[@]}" --peers="$dir/peers" --dtype f64
expect "peers of no ranks" 2 "--peers requires allreduce -n RANKS" "$perf" allreduce --peers

# A browser counts overlapping and truncated texts and reports the width of the page. It uses frames,
# because windows have a minimum width. Only these copies contain the script.
frame() { # PAGE WIDTH THEME
    echo "<iframe style=\"width:$2px;height:9000px;border:0;color-scheme:$3\" srcdoc=\""
    { sed 's|</body></html>||' "$1" && echo "<script>" && cat "$dir/look.js" && echo "</script></body></html>"; } |
        sed 's/&/\&amp;/g; s/"/\&quot;/g'
    echo "\"></iframe>"
}
cat >"$dir/look.js" <<'JS'
let texts = 0, bad = 0;
for (const svg of document.querySelectorAll("svg[role]")) {
    const all = [], box = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll("text")) {
        const r = text.getBoundingClientRect();
        texts++;
        if (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1) bad++;
        for (const o of all)
            if (r.left + 1 < o.right && o.left + 1 < r.right && r.top + 4 < o.bottom && o.top + 4 < r.bottom) bad++;
        all.push(r);
    }
}
const style = getComputedStyle(document.body).backgroundColor == "rgb(13, 17, 23)" ? "dark" : "light";
parent.document.documentElement.setAttribute("data-" + style + "-" + innerWidth, [document.documentElement.scrollWidth, texts,
    bad].join(" "));
JS
if ! missing chromium "pages are seen whole"; then
    {
        echo "<html>"
        frame "$dir/all.html" 320 dark
        for width in 400 1280; do for theme in light dark; do frame "$dir/every.html" $width $theme; done; done
        echo "</html>"
    } >"$dir/seen.html"
    HOME=$dir timeout -k 5 $((120 * slow)) chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
        --no-first-run --user-data-dir="$dir/chromium" --window-size=1400,1000 --dump-dom "file://$dir/seen.html" \
        2>/dev/null | grep -oE '^<html [^>]*>' >"$said"
    grep -qE 'data-dark-320="320 [1-9][0-9]+ 0"' "$said"
    result $? "on a small phone, dark: as wide as it, no text cut off or covered"
    for at in light-400 dark-400 light-1280 dark-1280; do
        grep -qE "data-$at=\"${at#*-} [1-9][0-9]{2,} 0\"" "$said"
        result $? "every chart, $at"
    done
fi
finish
