# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and service.awk -v part=NAME -v workers=N PART.csv: the tables of a part. Each cell is the median over
# launches of the launch's p50 in ms; ratios are of medians.

FNR > 1 {
    key = $4 SUBSEP $5 SUBSEP $7
    add(key, $10)
    if ($13 != "") nmse[key] = $13
    if ($14 != "") wire[key] = $14
    if ($5 == "iperf3") next
    note("case", $4)
    note("size", $7)
}

# Return the median in ms, or 0 if there is none.
function ms(of, who, b) { return median(of SUBSEP who SUBSEP b) / 1e3 }
function ms_cell(of, who, b) { return cell(of SUBSEP who SUBSEP b, 1e3) }
function error_text(of, who, b) { return (of, who, b) in nmse ? sprintf("%.1e", nmse[of, who, b]) : "-" }
function wire_text(of, who, b) { return (of, who, b) in wire ? sprintf("%.2f", wire[of, who, b] / b) : "-" }

function least(of, b, names,    i, n, name, t, found) {
    n = split(names, name, " ")
    for (i = 1; i <= n; i++) {
        t = ms(of, name[i], b)
        if (t && (!found || t < found)) found = t
    }
    return found
}

function dense_row(of, b, who, title, machines, goals,    t, gbps, bound, peer) {
    gbps = ms(of, "iperf3", 0) * 1e3
    t = ms(of, who, b)
    if (!t) return
    bound = gbps ? b * 8 / gbps / 1e6 : 0
    peer = least(of, b, "ring gloo openmpi")
    print "| " size_text(b) " | " title " | " machines " | " ms_cell(of, who, b) " | " \
        (goals ? mark(t, bound, "", 1.1) : ratio(t, bound)) " | " ratio(t, b * 8 / of / 1e6) " | " \
        (goals ? mark(peer, t, 1.35) : ratio(peer, t)) " |"
}

function dense(    c, i, of) {
    for (c = 1; c <= items["case"]; c++) {
        of = item["case", c]
        printf "\n**%d workers, links of %s (iperf3: %s Gbit/s): ms, median of launches [least-greatest]**\n\n", \
            workers, of, number(ms(of, "iperf3", 0) * 1e3)
        head("<size|<|machines|ms|time / bound (≤ 1.1)|time / (size / link)|best of ring, Gloo, Open MPI / time (≥ 1.35)")
        for (i = 1; i <= items["size"]; i++) {
            dense_row(of, item["size", i], "tribd", "tribd on hosts of its own", 2 * workers, 1)
            dense_row(of, item["size", i], "tribd-here", "tribd on the workers' hosts", workers)
            dense_row(of, item["size", i], "ring", "ring", workers)
            dense_row(of, item["size", i], "gloo", "Gloo", workers)
            dense_row(of, item["size", i], "openmpi", "Open MPI", workers)
        }
    }
    print "\nBound: the vector once at the rate of iperf3; bound of a ring / this bound: " \
        sprintf("%.2f.", 2 * (workers - 1) / workers)
}

# Expected density of the union of all workers' blocks.
function union(density, how) { return how == "same" ? density : 1 - (1 - density) ^ workers }

function blocks(    c, i, b, part_of, t, dense_ms, gloo_ms, gain) {
    print "\n**Blocks of 256 elements, `blocks` through tribd: ms, median of launches [least-greatest]**\n"
    head("<size|density of each|of the union|ms|time / dense|Gloo, dense / time|bytes sent / size")
    for (i = 1; i <= items["size"]; i++) {
        b = item["size", i]
        dense_ms = ms("dense", "tribd", b)
        gloo_ms = ms("dense", "gloo", b)
        for (c = 1; c <= items["case"]; c++) {
            if (split(item["case", c], part_of, "-") != 2) continue
            t = ms(item["case", c], "sparse", b)
            if (!t) continue
            gain = item["case", c] == "0.01-same" ? mark(gloo_ms, t, 12) " (≥ 12)" : ratio(gloo_ms, t)
            print "| " size_text(b) " | " part_of[1] * 100 " % | " \
                sprintf("%.3g", 100 * union(part_of[1], part_of[2])) " % | " ms_cell(item["case", c], "sparse", b) \
                " | " (part_of[1] == 1 ? mark(t, dense_ms, "", 1.05) " (≤ 1.05)" : ratio(t, dense_ms)) " | " \
                gain " | " wire_text(item["case", c], "sparse", b) " |"
        }
        print "| " size_text(b) " | dense | | " ms_cell("dense", "tribd", b) " | 1 | " \
            ratio(gloo_ms, dense_ms) " | " wire_text("dense", "tribd", b) " |"
        if (gloo_ms)
            print "| " size_text(b) " | Gloo, dense | | " ms_cell("dense", "gloo", b) " | " \
                ratio(gloo_ms, dense_ms) " | 1 | |"
    }
}

function codecs(    c, i, b, t, dense_ms) {
    print "\n**Codecs through tribd: ms, median of launches [least-greatest]**\n"
    head("<size|<codec|ms|dense / time|NMSE|bytes sent / size")
    for (i = 1; i <= items["size"]; i++) {
        b = item["size", i]
        dense_ms = ms("none", "tribd", b)
        for (c = 1; c <= items["case"]; c++) {
            t = ms(item["case", c], "tribd", b)
            if (!t) continue
            print "| " size_text(b) " | `" item["case", c] "` | " ms_cell(item["case", c], "tribd", b) " | " \
                (item["case", c] ~ /^(int8(:result=requantised)?|thc)$/ ? mark(dense_ms, t, 3.5) " (≥ 3.5)" : ratio(dense_ms, t)) \
                " | " error_text(item["case", c], "tribd", b) " | " wire_text(item["case", c], "tribd", b) " |"
        }
    }
}

# Launches that chose a number of leaders and launches given the same number run the same program:
# combine them.
function pool(of, b, with,    key, i) {
    key = of SUBSEP "pooled" SUBSEP b
    for (i = 1; i <= count[of SUBSEP with SUBSEP b]; i++)
        value[key, ++count[key]] = value[of, with, b, i]
}

function hierarchy(    c, i, j, of, b, n, name, ring, chosen, leaders) {
    n = split("ring leaders-1 leaders-2 leaders-4 leaders-auto auto", name, " ")
    for (c = 1; c <= items["case"]; c++) {
        of = item["case", c]
        printf "\n**2 hosts of 4 ranks, links of %s: ms, median of launches [least-greatest]**\n\n", of
        head("<size|flat ring|1 leader|2 leaders|4 leaders|chosen: how many|algorithm chosen|ring / chosen (≥ 1)|chosen / best number (≤ 1.05)")
        for (i = 1; i <= items["size"]; i++) {
            b = item["size", i]
            chosen = int(ms(of, "chosen", b) * 1e3 + 0.5)
            printf "| %s |", size_text(b)
            for (j = 1; j <= n; j++)
                printf " %s%s |", (chosen && name[j] == "leaders-auto" ? chosen ": " : ""), ms_cell(of, name[j], b)
            pool(of, b, "leaders-auto")
            if (chosen) pool(of, b, "leaders-" chosen)
            leaders = "leaders-1 leaders-2 leaders-4"
            if (chosen) sub("leaders-" chosen, "pooled", leaders)
            ring = ms(of, "ring", b)
            print " " mark(ring, ms(of, "pooled", b), 1, "") " | " \
                mark(ms(of, "pooled", b), least(of, b, leaders), "", 1.05) " |"
        }
    }
    print "\nGoal for large vectors: ring / chosen of at least 1.5. The last two columns combine the launches that"
    print "chose the number with those that were given the same number: both run the same program."
}

END {
    if (part == "dense") dense()
    else if (part == "blocks") blocks()
    else if (part == "codecs") codecs()
    else hierarchy()
}
