# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and results.awk limits.csv runs.csv: write documents like trib-perf --json, for trib-perf report.
#
# -v to=PREFIX         write each document to PREFIX, a number and .json; print its name
# -v split_by=COLUMNS  one document for each combination of values, which it has in "run"
# -v name=COLUMN       the name of a row; -v own=PATTERN: names of Tributary, others are peers
# -v key=WORD          kind of the names of own rows: way or codec; "": no names
# -v bytes=N           size of all rows, if there is no such column
#
# Environment: RESULTS_HEAD, the beginning of all documents (format, version, time, argv, machine,
# settings), and RESULTS_RUN, the common members of "run", such as "collective": "allreduce".
#
# The columns known below become numbers of the rows: the median over launches, and for times also
# quartiles. limits.csv has lines KEY,NAME,BYTES,GBPS: KEY is the values of a document separated by /,
# or *; 0 bytes: all sizes.

BEGIN {
    member["rate"] = "link_gbps"; member["trip"] = "round_trip_ms"; member["link"] = "transport"; member["hosts"] = "ranks"
    n_split = split(split_by, split_column, " ")
    n_known = split("p50_us us ms nmse wire_bytes bytes_per_element GBps elements_per_s latency bandwidth", known, " ")
    to_us["p50_us"] = to_us["us"] = to_us["latency"] = 1
    to_us["ms"] = 1000
}

FNR == 1 { file++ }

file == 1 { limit_key[++limits] = $1; limit_name[limits] = $2; limit_bytes[limits] = $3; limit_rate[limits] = $4; next }

FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }

{
    part = ""
    for (i = 1; i <= n_split; i++) part = part (i > 1 ? "/" : "") $at[split_column[i]]
    who = $at[name]
    size = ("bytes" in at) ? $at["bytes"] : bytes
    if (!(size > 0)) next
    note("part", part)
    note(part, who)
    note(part SUBSEP who, size)
    row = part SUBSEP who SUBSEP size
    if ("what" in at) { figure(row, $at["what"], $at["value"]); next }
    for (i = 1; i <= n_known; i++) if (known[i] in at) figure(row, known[i], $at[known[i]])
}

# Add a number; no launch has "nan" or nothing.
function figure(row, what, text) { if (text ~ /^[-+]?[0-9.]/) add(row SUBSEP what, text) }

function text_of(x) { gsub(/["\\]/, "\\\\&", x); return "\"" x "\"" }

# Quantile of values sorted by summarise.
function quantile(key, p,    n) { n = count[key]; return value[key, 1 + int(p * (n - 1) + 0.5)] }

# Return the members of a row: ", "p50_us": 5, …".
function figures(row, ranks,    i, key, line, size, part_of, dense) {
    split(row, part_of, SUBSEP)
    size = part_of[3]
    for (i = 1; i <= n_known; i++) {
        key = row SUBSEP known[i]
        if (!(key in count)) continue
        summarise(key)
        if (known[i] in to_us)
            line = line sprintf(", \"p50_us\": %.6g, \"p25_us\": %.6g, \"p75_us\": %.6g, \"min_us\": %.6g", \
                middle * to_us[known[i]], quantile(key, 0.25) * to_us[known[i]], quantile(key, 0.75) * to_us[known[i]], low * to_us[known[i]])
        else if (known[i] == "wire_bytes") {
            dense = 2 * (ranks - 1) / ranks * size
            if (middle > 0 && dense > 0) line = line sprintf(", \"bytes_per_element\": %.6g", 4 * middle / dense)
        } else if (known[i] == "elements_per_s") line = line sprintf(", \"GBps\": %.6g", 4e-9 * middle)
        else line = line sprintf(", \"%s\": %.6g", known[i] == "bandwidth" ? "GBps" : known[i], middle)
    }
    return line
}

# Rows of one contender, separated by commas.
function rows_of(part, who, ranks, word, between, to,    i) {
    for (i = 1; i <= items[part, who]; i++) {
        printf "%s\n    {%s\"bytes\": %d%s}", between, word == "" ? "" : "\"" word "\": " text_of(who) ", ", \
            item[part, who, i], figures(part SUBSEP who SUBSEP item[part, who, i], ranks) >to
        between = ","
    }
    return between
}

# The values that identify a document. A rate such as 10gbit is the link rate.
function run_of(part,    i, of, line, column, x) {
    split(part, of, "/")
    line = ENVIRON["RESULTS_RUN"]
    for (i = 1; i <= n_split; i++) {
        column = split_column[i]
        x = of[i]
        if (column == "rate") x = x ~ /mbit$/ ? x / 1000 : x + 0
        if (column == "place") x = x == "in" ? "in place" : "out of place"
        if (column in member) column = member[column]
        line = line (line != "" ? ", " : "") "\"" column "\": " (x ~ /^[0-9]+(\.[0-9]+)?$/ ? x + 0 : text_of(x))
    }
    return line
}

function ranks_of(line) { return match(line, /"ranks": [0-9]+/) ? substr(line, RSTART + 9, RLENGTH - 9) + 0 : 0 }

function limits_of(part, line, to,    i, between, rate) {
    printf "\"limits\": [" >to
    for (i = 1; i <= limits; i++)
        if (limit_key[i] == part || limit_key[i] == "*") {
            printf "%s{\"name\": %s, \"bytes\": %d, \"GBps\": %.6g}", between, text_of(limit_name[i]), limit_bytes[i], limit_rate[i] >to
            between = ", "
        }
    if (between == "" && match(line, /"link_gbps": [0-9.]+/)) {
        rate = substr(line, RSTART + 13, RLENGTH - 13) + 0
        printf "{\"name\": \"link, %g Gbit/s\", \"GBps\": %.6g}", rate, rate / 8 >to
    }
    printf "],\n" >to
}

function document(part, to,    i, line, ranks, between) {
    line = run_of(part)
    ranks = ranks_of(line)
    print "{" ENVIRON["RESULTS_HEAD"] ",\n\"run\": {" line "}," >to
    limits_of(part, line, to)
    printf "\"results\": [" >to
    for (i = 1; i <= items[part]; i++)
        if (item[part, i] ~ own) between = rows_of(part, item[part, i], ranks, key, between, to)
    between = ""
    printf "],\n\"peers\": [" >to
    for (i = 1; i <= items[part]; i++)
        if (item[part, i] !~ own) {
            printf "%s\n  {\"name\": %s, \"results\": [", between, text_of(item[part, i]) >to
            rows_of(part, item[part, i], ranks, "", "", to)
            printf "]}" >to
            between = ","
        }
    print "]}" >to
    close(to)
    print to
}

END { for (p = 1; p <= items["part"]; p++) document(item["part", p], sprintf("%s%03d.json", to, p)) }
