# SPDX-License-Identifier: BSD-3-Clause
#
# medians.awk and hosts.awk runs.csv: print the results of hosts.sh as Markdown tables.
#
# Each cell is the median over launches of the launch's p50 in ms, with the least and the
# greatest launch. The bound is 2(N-1)/N vectors at the rate of iperf3.

BEGIN { FS = "," }

FNR == 1 { next }

{
    part = $4 SUBSEP $6
    if (!(part in known_part)) { known_part[part] = 1; parts[++n_parts] = part }
    key = part SUBSEP $5 SUBSEP $7
    value[key, ++count[key]] = $10 + 0
    if ($5 == "iperf3") next
    if (!($5 in known_name)) { known_name[$5] = 1; name[++names] = $5 }
    if (!($7 in known_size)) { known_size[$7] = 1; size[++sizes] = $7 }
}

function row(part, n, gbps, b,    i, key, line, best, ours, bound) {
    line = "| " size_text(b) " |"
    for (i = 1; i <= names; i++) {
        key = part SUBSEP name[i] SUBSEP b
        if (!(key in count)) { line = line " - |"; continue }
        summarise(key)
        line = line " " number(middle / 1e3) " [" number(low / 1e3) "-" number(high / 1e3) "] |"
        if (name[i] == "trib") ours = middle
        else if (best == 0 || middle < best) best = middle
    }
    bound = gbps > 0 ? 2 * (n - 1) / n * b * 8 / (gbps * 1e3) : 0
    print line " " (bound ? number(bound / 1e3) : "-") " | " ratio(ours, bound) " | " \
        ratio(best, ours) " |"
}

function table(part,    i, head, rule, of, key, gbps) {
    split(part, of, SUBSEP)
    key = part SUBSEP "iperf3" SUBSEP 0
    if (key in count) { summarise(key); gbps = middle }
    printf "\n**%d hosts, links of %s (iperf3: %s Gbit/s): ms, median of launches [least-greatest]**\n\n", \
        of[2], of[1], gbps ? number(gbps) " [" number(low) "-" number(high) "]" : "-"
    head = "| size |"
    rule = "|---|"
    for (i = 1; i <= names; i++) { head = head " " name[i] " |"; rule = rule "--:|" }
    print head " bound | trib / bound | best peer / trib |"
    print rule "--:|--:|--:|"
    for (i = 1; i <= sizes; i++) row(part, of[2], gbps, size[i])
}

END { for (i = 1; i <= n_parts; i++) table(parts[i]) }
