# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and codec.awk runs.csv. A rate is in GB/s of the float32 vector; its ratio is to memcpy of that vector
# in the same launch. Each is the median of the launches. In names of rows a ; stands for a comma and a ~ for a space.

BEGIN {
    title["dram"] = "64 MiB, one thread"
    title["threads"] = "64 MiB, two threads"
    title["cache"] = "256 KiB, one thread"
    # Ratio to memcpy, for one thread on a vector larger than the caches.
    goals = "f16 encode 0.9;f16 decode_add 0.9;bf16 encode 0.9;bf16 decode_add 0.9;int8 encode_ef 0.6;int8 decode_add 0.9;" \
        "int8 merge 1.8;qsgd:bits=4 encode 0.5;efsign encode 0.8;signsgd encode 0.8;natural encode 0.8;" \
        "dgc:ratio=0.01 encode_ef 0.5;dgc:ratio=0.001 encode_ef 0.5;adacomp encode 0.4;blocks encode 1.2"
    said["encode_ef"] = "encode with error feedback"
    said["decode_add"] = "decode-add"
    said["merge"] = "merge, into 16 bits"
    peers = "torch.topk 0.1 %=topk:ratio=0.001;torch.topk 0.1 %=dgc:ratio=0.001;torch.topk 0.1 % chunks=topk:ratio=0.001;" \
        "numpy argpartition 0.1 %=topk:ratio=0.001;numpy argpartition 0.1 %=dgc:ratio=0.001;" \
        "torch.topk 1 %=topk:ratio=0.01;torch.topk 1 %=dgc:ratio=0.01;torch.topk 1 % chunks=topk:ratio=0.01;" \
        "numpy argpartition 1 %=topk:ratio=0.01;torch quantize_per_tensor int8=int8;torch copy_ to float16=f16"
}

FNR == 1 { next }

# raw keeps the order of launches, because summarise sorts `value`; in_round compares within one round, because the
# machine may change between rounds.
{
    key = $4 SUBSEP $5 SUBSEP $8
    if ($9 != "") add("rate" SUBSEP key, $9)
    if ($10 != "") add("ratio" SUBSEP key, $10)
    size[$5] = $6
    nmse[$5] = $7
    note($4, $5)
    raw[key, ++raws[key]] = $10
    in_round[$1, key] = $9
    if ($1 > rounds) rounds = $1 + 0
}

# Set low, middle, high; return false if there is no such row.
function have(what, from, who, how,    key) {
    key = what SUBSEP from SUBSEP who SUBSEP how
    median(key)
    return key in count
}

function figure(x) { return x == 0 ? "0" : sprintf(x < 0.001 ? "%.1e" : "%.2g", x) }

function rate_cell(from, who, how,    text) {
    if (!have("rate", from, who, how)) return "-"
    text = number(middle)
    have("ratio", from, who, how)
    return text " (" sprintf("%.2f", middle) ")"
}

function range(form) { return sprintf(form " [" form "-" form "]", middle, low, high) }

function text_of(who) { gsub(/;/, ",", who); return "`" who "`" }

# Codecs without an error: a vote is not a sum, and a model was trained on this vector.
function says_no_error(who) { return who ~ /^(signsgd|powersgd|gradiveq|lgc)/ }

function rates(from,    i, p, pass, who, line) {
    if (!items[from]) return
    printf "\n**%s: GB/s (ratio to memcpy%s)**\n\n", title[from], from == "threads" ? " with two threads" : ""
    head("<codec|bytes per element|NMSE|encode|with error feedback|decode|decode-add|merge")
    split("encode encode_ef decode decode_add merge", pass, " ")
    for (i = 1; i <= items[from]; i++) {
        who = item[from, i]
        line = "| " text_of(who) " | " figure(size[who]) " | " (says_no_error(who) ? "-" : figure(nmse[who])) " |"
        for (p = 1; p <= 5; p++) line = line " " rate_cell(from, who, pass[p]) " |"
        print line
    }
    have("rate", from, item[from, 1], "memcpy")
    printf "\nmemcpy: %s GB/s.\n", range("%.1f")
}

function goal_table(    i, n, of, part) {
    print "\n**Goals: ratio to memcpy, 64 MiB, one thread**\n"
    head("<what|ratio|goal")
    n = split(goals, of, ";")
    for (i = 1; i <= n; i++) {
        split(of[i], part, " ")
        if (!have("ratio", part[1] == "blocks" ? "zeros" : "dram", part[1], part[2])) continue
        print "| `" part[1] "` " (part[2] in said ? said[part[2]] : part[2]) (part[1] == "blocks" ? ", 99 % zero" : "") \
            " | " range("%.2f") " | " part[3] (middle >= part[3] ? " ✓" : " ✗") " |"
    }
    if (!have("rate", "dram", "topk:ratio=0.01", "decode_add")) return
    middle *= 2.5; low *= 2.5; high *= 2.5 # GB/s / 4 bytes / 1 %, in millions
    print "| `topk:ratio=0.01` decode-add, million entries a second | " range("%.0f") \
        " | 300" (middle >= 300 ? " ✓" : " ✗") " |"
}

# Rate of a launch / rate of y += x in the same launch, from the ratios of both to memcpy.
function feedback_table(    i, who, here, ef, plus, k) {
    if (!items["dram"]) return
    print "\n**Error feedback compared with its minimal traffic, 64 MiB, one thread**\n"
    head("<codec|with error feedback, GB/s of float32|minimal traffic, GB/s|y += x, GB/s|ratio")
    for (i = 1; i <= items["dram"]; i++) {
        who = item["dram", i]
        if (!have("rate", "dram", who, "encode_ef")) continue
        here = middle
        ef = "dram" SUBSEP who SUBSEP "encode_ef"
        plus = "dram" SUBSEP who SUBSEP "add"
        for (k = 1; k <= raws[ef]; k++) add("part" SUBSEP who, raw[ef, k] / raw[plus, k] * (12 + size[who]) / 12)
        have("rate", "dram", who, "add")
        printf "| %s | %s | %s | %s |", text_of(who), number(here), number(here * (12 + size[who]) / 4), number(3 * middle)
        median("part" SUBSEP who)
        print " " range("%.2f") " |"
    }
}

# Set middle to the median over rounds of the ratio of a pass to a peer.
function over_peer(who, ours, how,    key, r, theirs, mine) {
    key = "peer" SUBSEP who SUBSEP ours SUBSEP how
    for (r = 1; r <= rounds; r++) {
        theirs = in_round[r, "torch" SUBSEP who SUBSEP "call"]
        mine = in_round[r, "ours" SUBSEP ours SUBSEP how]
        if (theirs > 0 && mine > 0) add(key, mine / theirs)
    }
    median(key)
}

function peer(theirs, ours,    who, line) {
    who = theirs
    gsub(/ /, "~", who)
    if (!have("rate", "torch", who, "call")) return
    line = "| " theirs " | " range("%.2f") " | " text_of(ours) " |"
    if (!have("rate", "ours", ours, "encode")) { print line " - | - | - |"; return }
    line = line " " range("%.2f") " |"
    over_peer(who, ours, "encode")
    line = line " " range("%.1f") (theirs ~ /float16|chunks/ ? "" : (middle >= 20 ? " ✓" : " ✗") " (20)") " |"
    over_peer(who, ours, "memcpy")
    print line " " range("%.1f") " |"
}

function peer_table(    i, n, of, pair) {
    if (!items["torch"] || !items["ours"]) return
    print "\n**Encode, compared with PyTorch and NumPy: GB/s, 64 MiB, one thread**\n"
    head("<peer|its rate|<Tributary|its rate|ratio (goal)|memcpy / peer")
    n = split(peers, of, ";")
    for (i = 1; i <= n; i++) {
        match(of[i], /=/)
        peer(substr(of[i], 1, RSTART - 1), substr(of[i], RSTART + 1))
    }
    print "\nThe peers take the whole vector; \"chunks\": 65 536 elements at a time, as Tributary does."
    if (have("rate", "torch", "torch~copy_", "call"))
        printf "PyTorch copies float32 at %s GB/s", range("%.1f")
    if (have("rate", "ours", item["ours", 1], "memcpy"))
        printf ", memcpy at %s", range("%.1f")
    print "."
}

END {
    goal_table()
    peer_table()
    feedback_table()
    rates("dram")
    rates("threads")
    rates("cache")
}
