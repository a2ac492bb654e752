# SPDX-License-Identifier: BSD-3-Clause
#
# medians.awk and service.awk -v part=NAME -v workers=N PART.csv: print the results of
# service.sh as Markdown tables.
#
# Each cell is the median over launches of the launch's p50 in ms, with the least and the
# greatest launch; ratios are of medians.

BEGIN { FS = "," }

FNR == 1 { next }

{
    key = $4 SUBSEP $5 SUBSEP $7
    value[key, ++count[key]] = $10 + 0
    if ($13 != "") nmse[key] = $13
    if ($14 != "") wire[key] = $14
    if ($5 == "iperf3") next
    if (!($4 in known_case)) { known_case[$4] = 1; cases[++n_cases] = $4 }
    if (!($7 in known_size)) { known_size[$7] = 1; size[++sizes] = $7 }
}

# Return the median in ms, or 0 if there is none. Set low, middle, high in µs.
function ms(of, who, b,    key) {
    key = of SUBSEP who SUBSEP b
    low = middle = high = 0
    if (!(key in count)) return 0
    summarise(key)
    return middle / 1e3
}

function cell(of, who, b) {
    return ms(of, who, b) ? number(middle / 1e3) " [" number(low / 1e3) "-" number(high / 1e3) "]" : "-"
}

# Return a ratio, if there is one, with ✓ or ✗ for the goal.
function mark(a, b, least, most,    r) {
    if (a <= 0 || b <= 0) return "-"
    r = a / b
    return sprintf("%.2f", r) ((least == "" || r >= least) && (most == "" || r <= most) ? " ✓" : " ✗")
}

function error_text(of, who, b,    key) {
    key = of SUBSEP who SUBSEP b
    return key in nmse ? sprintf("%.1e", nmse[key]) : "-"
}

function wire_text(of, who, b,    key) {
    key = of SUBSEP who SUBSEP b
    return key in wire ? sprintf("%.2f", wire[key] / b) : "-"
}

# --- dense ---

function best_peer(of, b,    i, n, name, t, best) {
    n = split("ring gloo openmpi", name, " ")
    for (i = 1; i <= n; i++) {
        t = ms(of, name[i], b)
        if (t && (!best || t < best)) best = t
    }
    return best
}

function dense_row(of, b, who, title, machines, goals,    t, gbps, bound, best) {
    gbps = ms(of, "iperf3", 0) * 1e3
    t = ms(of, who, b)
    if (!t) return
    bound = gbps ? b * 8 / gbps / 1e6 : 0
    best = best_peer(of, b)
    print "| " size_text(b) " | " title " | " machines " | " cell(of, who, b) " | " \
        (goals ? mark(t, bound, "", 1.1) : ratio(t, bound)) " | " ratio(t, b * 8 / of / 1e6) " | " \
        (goals ? mark(best, t, 1.35, "") : ratio(best, t)) " |"
}

function dense(    c, i, of) {
    for (c = 1; c <= n_cases; c++) {
        of = cases[c]
        printf "\n**%d workers, links of %s (iperf3: %s Gbit/s): ms, median of launches [least-greatest]**\n\n", \
            workers, of, number(ms(of, "iperf3", 0) * 1e3)
        print "| size | | machines | ms | time / bound (≤ 1.1) | time / (size / link) | best of ring, Gloo, Open MPI / time (≥ 1.35) |"
        print "|---|---|--:|--:|--:|--:|--:|"
        for (i = 1; i <= sizes; i++) {
            dense_row(of, size[i], "tribd", "tribd on hosts of its own", 2 * workers, 1)
            dense_row(of, size[i], "tribd-here", "tribd on the workers' hosts", workers)
            dense_row(of, size[i], "ring", "ring", workers)
            dense_row(of, size[i], "gloo", "Gloo", workers)
            dense_row(of, size[i], "openmpi", "Open MPI", workers)
        }
    }
    print "\nBound: the vector once at the rate of iperf3; bound of a ring / this bound: " \
        sprintf("%.2f.", 2 * (workers - 1) / workers)
}

# --- blocks ---

# Expected density of the union of all workers' blocks.
function union(density, how) { return how == "same" ? density : 1 - (1 - density) ^ workers }

function blocks(    c, i, b, part_of, t, dense_ms, gloo_ms, gain) {
    print "\n**Blocks of 256 elements, `blocks` through tribd: ms, median of launches [least-greatest]**\n"
    print "| size | density of each | of the union | ms | time / dense | Gloo, dense / time | bytes sent / size |"
    print "|---|--:|--:|--:|--:|--:|--:|"
    for (i = 1; i <= sizes; i++) {
        b = size[i]
        dense_ms = ms("dense", "tribd", b)
        gloo_ms = ms("dense", "gloo", b)
        for (c = 1; c <= n_cases; c++) {
            if (split(cases[c], part_of, "-") != 2) continue
            t = ms(cases[c], "sparse", b)
            if (!t) continue
            gain = cases[c] == "0.01-same" ? mark(gloo_ms, t, 12, "") " (≥ 12)" : ratio(gloo_ms, t)
            print "| " size_text(b) " | " part_of[1] * 100 " % | " \
                sprintf("%.3g", 100 * union(part_of[1], part_of[2])) " % | " cell(cases[c], "sparse", b) \
                " | " (part_of[1] == 1 ? mark(t, dense_ms, "", 1.05) " (≤ 1.05)" : ratio(t, dense_ms)) " | " \
                gain " | " wire_text(cases[c], "sparse", b) " |"
        }
        print "| " size_text(b) " | dense | | " cell("dense", "tribd", b) " | 1 | " \
            ratio(gloo_ms, dense_ms) " | " wire_text("dense", "tribd", b) " |"
        if (gloo_ms)
            print "| " size_text(b) " | Gloo, dense | | " cell("dense", "gloo", b) " | " \
                ratio(gloo_ms, dense_ms) " | 1 | |"
    }
}

# --- codecs ---

function codecs(    c, i, b, t, dense_ms) {
    print "\n**Codecs through tribd: ms, median of launches [least-greatest]**\n"
    print "| size | codec | ms | dense / time | NMSE | bytes sent / size |"
    print "|---|---|--:|--:|--:|--:|"
    for (i = 1; i <= sizes; i++) {
        b = size[i]
        dense_ms = ms("none", "tribd", b)
        for (c = 1; c <= n_cases; c++) {
            t = ms(cases[c], "tribd", b)
            if (!t) continue
            print "| " size_text(b) " | `" cases[c] "` | " cell(cases[c], "tribd", b) " | " \
                (cases[c] ~ /^(int8(:result=requantised)?|thc)$/ ? mark(dense_ms, t, 3.5, "") " (≥ 3.5)" : ratio(dense_ms, t)) \
                " | " error_text(cases[c], "tribd", b) " | " wire_text(cases[c], "tribd", b) " |"
        }
    }
}

# --- hierarchy ---

# Launches that chose a number of leaders and launches given the same number run the same program:
# combine them.
function pool(of, b, with,    key, i) {
    key = of SUBSEP "pooled" SUBSEP b
    for (i = 1; i <= count[of SUBSEP with SUBSEP b]; i++)
        value[key, ++count[key]] = value[of, with, b, i]
}

# Return the time of the best number of leaders.
function best_number(of, b, chosen,    j, t, best) {
    for (j = 1; j <= 4; j *= 2) {
        t = ms(of, j == chosen ? "pooled" : "leaders-" j, b)
        if (t && (!best || t < best)) best = t
    }
    return best
}

function hierarchy(    c, i, j, of, b, n, name, ring, chosen) {
    n = split("ring leaders-1 leaders-2 leaders-4 leaders-auto auto", name, " ")
    for (c = 1; c <= n_cases; c++) {
        of = cases[c]
        printf "\n**2 hosts of 4 ranks, links of %s: ms, median of launches [least-greatest]**\n\n", of
        print "| size | flat ring | 1 leader | 2 leaders | 4 leaders | chosen: how many | algorithm chosen | ring / chosen (≥ 1) | chosen / best number (≤ 1.05) |"
        print "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
        for (i = 1; i <= sizes; i++) {
            b = size[i]
            chosen = int(ms(of, "chosen", b) * 1e3 + 0.5)
            printf "| %s |", size_text(b)
            for (j = 1; j <= n; j++)
                printf " %s%s |", (chosen && name[j] == "leaders-auto" ? chosen ": " : ""), cell(of, name[j], b)
            pool(of, b, "leaders-auto")
            if (chosen) pool(of, b, "leaders-" chosen)
            ring = ms(of, "ring", b)
            print " " mark(ring, ms(of, "pooled", b), 1, "") " | " \
                mark(ms(of, "pooled", b), best_number(of, b, chosen), "", 1.05) " |"
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
