# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and sim.awk -v within=PERCENT runs.csv: measured and simulated times. Exit status 1: an error is larger,
# or a row is missing.

FNR > 1 {
    key = $4 SUBSEP $5
    note("row", key)
    if ($6 == "measured") add(key, $7)
    else simulated[key] = $7
}

END {
    print "| hosts | what | measured [min-max] ms | simulated ms | error |"
    print "|---|---|---|---|---|"
    for (i = 1; i <= items["row"]; i++) {
        key = item["row", i]
        split(key, part, SUBSEP)
        line = "| " part[1] " | " part[2] " | " (key in simulated ? cell(key) " | " number(simulated[key]) : "- | -") " |"
        if (!(key in count) || !(key in simulated)) { print line " - |"; missing++; continue }
        error = 100 * (simulated[key] / median(key) - 1)
        off = error < 0 ? -error : error
        if (off > worst) worst = off
        far += off > within
        printf "%s %+.1f %% |\n", line, error
    }
    printf "\nThe farthest is %.1f %% off; %d of %d rows are beyond %g %%.\n", worst, far, items["row"] - missing, within
    exit far > 0 || missing > 0
}
