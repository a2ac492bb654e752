# SPDX-License-Identifier: BSD-3-Clause
#
# medians.awk and sim.awk: print the table of sim.sh from rows
# "round,before,after,hosts,row,what,ms". within: percent; exit status 1 if an error exceeds it.
BEGIN { FS = "," }
NR == 1 { next }
{
    key = $4 SUBSEP $5
    if (!(key in seen)) { seen[key] = 1; order[++rows] = key }
    if ($6 == "measured") value[key, ++count[key]] = $7
    else simulated[key] = $7
}
END {
    print "| hosts | what | measured [min-max] ms | simulated ms | error |"
    print "|---|---|---|---|---|"
    for (i = 1; i <= rows; i++) {
        key = order[i]
        split(key, part, SUBSEP)
        if (!count[key] || !(key in simulated)) {
            printf "| %s | %s | - | %s | - |\n", part[1], part[2], key in simulated ? number(simulated[key]) : "-"
            missing++
            continue
        }
        summarise(key)
        error = 100 * (simulated[key] / middle - 1)
        off = error < 0 ? -error : error
        if (off > worst) worst = off
        far += off > within
        printf "| %s | %s | %s [%s-%s] | %s | %+.1f %% |\n", part[1], part[2], number(middle), number(low), number(high), number(simulated[key]), error
    }
    printf "\nThe farthest is %.1f %% off; %d of %d rows are beyond %g %%.\n", worst, far, rows - missing, within
    exit far > 0 || missing > 0
}
