# SPDX-License-Identifier: BSD-3-Clause
# Print rows "rate,way,round,ms,cpu_ms" as a table: medians over rounds, with two columns per rate,
# the time of a step and its processor time.

function median(values,    n, i, k, held, list) {
    n = split(values, list, " ")
    for (i = 2; i <= n; i++) {
        held = list[i] + 0
        for (k = i - 1; k > 0 && list[k] + 0 > held; k--)
            list[k + 1] = list[k]
        list[k + 1] = held
    }
    return n == 0 ? "" : sprintf("%.0f", n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2)
}

BEGIN { FS = "," }

NR > 1 {
    if (!($1 in rate_seen))
        rates[++n_rates] = $1
    if (!($2 in way_seen))
        ways[++n_ways] = $2
    rate_seen[$1] = way_seen[$2] = 1
    took[$1, $2] = took[$1, $2] " " $4
    cpu[$1, $2] = cpu[$1, $2] " " $5
}

END {
    head = "| way of summing |"
    rule = "|---|"
    for (r = 1; r <= n_rates; r++) {
        head = head " " rates[r] " | processor |"
        rule = rule "--:|--:|"
    }
    print head
    print rule
    for (w = 1; w <= n_ways; w++) {
        line = "| " ways[w] " |"
        for (r = 1; r <= n_rates; r++)
            line = line " " median(took[rates[r], ways[w]]) " | " median(cpu[rates[r], ways[w]]) " |"
        print line
    }
}
