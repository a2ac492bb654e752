# SPDX-License-Identifier: BSD-3-Clause
#
# medians.awk and codec.awk runs.csv: print the results of codec.sh as Markdown tables.
#
# A rate is in GB/s of the float32 vector; its ratio is to memcpy of that vector in the same
# launch. Each is the median of the launches.

BEGIN {
    FS = ","
    n_passes = split("encode encode_ef decode decode_add merge", pass, " ")
    split("dram threads cache", vector, " ")
    title["dram"] = "64 MiB, one thread"
    title["threads"] = "64 MiB, two threads"
    title["cache"] = "256 KiB, one thread"
    goals()
}

FNR == 1 { next }

{
    add("rate", $9)
    add("ratio", $10)
    size[$5] = $6
    nmse[$5] = $7
    launches[$4]++
    if (!(($4, $5) in known)) { known[$4, $5] = 1; name[$4, ++names[$4]] = $5 }
}

function add(what, x,    key) {
    key = what SUBSEP $4 SUBSEP $5 SUBSEP $8
    if (x != "") value[key, ++count[key]] = x + 0
}

# Set low, middle, high; return false if there is no such row.
function have(what, from, who, how,    key) {
    key = what SUBSEP from SUBSEP who SUBSEP how
    if (!(key in count)) return 0
    summarise(key)
    return 1
}

function figure(x) { return x == 0 ? "0" : sprintf(x < 0.001 ? "%.1e" : "%.2g", x) }

function cell(from, who, how,    text) {
    if (!have("rate", from, who, how)) return "-"
    text = number(middle)
    have("ratio", from, who, how)
    return text " (" sprintf("%.2f", middle) ")"
}

function range(form) {
    return sprintf(form " [" form "-" form "]", middle, low, high)
}

# In names of rows a ; stands for a comma and a ~ for a space.
function text_of(who) { gsub(/;/, ",", who); return "`" who "`" }

# Codecs without an error: a vote is not a sum, and a model was trained on this vector.
function says_no_error(who) { return who ~ /^(signsgd|powersgd|gradiveq|lgc)/ }

function rates(from,    i, p, who, line) {
    if (!names[from]) return
    printf "\n**%s: GB/s (ratio to memcpy%s)**\n\n", title[from], \
        from == "threads" ? " with two threads" : ""
    print "| codec | bytes per element | NMSE | encode | with error feedback | decode | decode-add | merge |"
    print "|---|--:|--:|--:|--:|--:|--:|--:|"
    for (i = 1; i <= names[from]; i++) {
        who = name[from, i]
        line = "| " text_of(who) " | " figure(size[who]) " | " \
            (says_no_error(who) ? "-" : figure(nmse[who])) " |"
        for (p = 1; p <= n_passes; p++) line = line " " cell(from, who, pass[p]) " |"
        print line
    }
    have("rate", from, name[from, 1], "memcpy")
    printf "\nmemcpy: %s GB/s.\n", range("%.1f")
}

# --- goals ---

function goal(what, from, who, how, want) {
    goal_what[++n_goals] = what
    goal_of[n_goals] = from SUBSEP who SUBSEP how
    goal_want[n_goals] = want
}

# Goals for one thread on a vector larger than the caches.
function goals() {
    goal("`f16` encode", "dram", "f16", "encode", 0.9)
    goal("`f16` decode-add", "dram", "f16", "decode_add", 0.9)
    goal("`bf16` encode", "dram", "bf16", "encode", 0.9)
    goal("`bf16` decode-add", "dram", "bf16", "decode_add", 0.9)
    goal("`int8` encode with error feedback", "dram", "int8", "encode_ef", 0.6)
    goal("`int8` decode-add", "dram", "int8", "decode_add", 0.9)
    goal("`int8` merge, into 16 bits", "dram", "int8", "merge", 1.8)
    goal("`qsgd:bits=4` encode", "dram", "qsgd:bits=4", "encode", 0.5)
    goal("`efsign` encode", "dram", "efsign", "encode", 0.8)
    goal("`signsgd` encode", "dram", "signsgd", "encode", 0.8)
    goal("`natural` encode", "dram", "natural", "encode", 0.8)
    goal("`dgc:ratio=0.01` encode with error feedback", "dram", "dgc:ratio=0.01", "encode_ef", 0.5)
    goal("`dgc:ratio=0.001` encode with error feedback", "dram", "dgc:ratio=0.001", "encode_ef", 0.5)
    goal("`adacomp` encode", "dram", "adacomp", "encode", 0.4)
    goal("`blocks` encode, 99 % zero", "zeros", "blocks", "encode", 1.2)
}

function goal_table(    i, part, mark) {
    print "\n**Goals: ratio to memcpy, 64 MiB, one thread**\n"
    print "| what | ratio | goal |"
    print "|---|--:|--:|"
    for (i = 1; i <= n_goals; i++) {
        split(goal_of[i], part, SUBSEP)
        if (!have("ratio", part[1], part[2], part[3])) continue
        mark = middle >= goal_want[i] ? " ✓" : " ✗"
        print "| " goal_what[i] " | " range("%.2f") " | " goal_want[i] mark " |"
    }
    if (!have("rate", "dram", "topk:ratio=0.01", "decode_add")) return
    middle *= 2.5; low *= 2.5; high *= 2.5 # GB/s / 4 bytes / 1 %, in millions
    print "| `topk:ratio=0.01` decode-add, million entries a second | " range("%.0f") \
        " | 300" (middle >= 300 ? " ✓" : " ✗") " |"
}

# --- error feedback ---

# Rate of a launch / rate of y += x in the same launch, from the ratios of both to memcpy.
function feedback_table(    i, who, here, key, k) {
    if (!names["dram"]) return
    print "\n**Error feedback compared with its minimal traffic, 64 MiB, one thread**\n"
    print "| codec | with error feedback, GB/s of float32 | minimal traffic, GB/s | y += x, GB/s | ratio |"
    print "|---|--:|--:|--:|--:|"
    for (i = 1; i <= names["dram"]; i++) {
        who = name["dram", i]
        if (!have("rate", "dram", who, "encode_ef")) continue
        here = middle
        key = "part" SUBSEP who
        for (k = 1; k <= count["ratio", "dram", who, "encode_ef"]; k++)
            value[key, ++count[key]] = raw["encode_ef", who, k] / raw["add", who, k] * \
                (12 + size[who]) / 12
        have("rate", "dram", who, "add")
        printf "| %s | %s | %s | %s |", text_of(who), number(here), \
            number(here * (12 + size[who]) / 4), number(3 * middle)
        summarise(key)
        print " " range("%.2f") " |"
    }
}

# Keep the launches in order, because summarise sorts `value`.
$4 == "dram" && ($8 == "encode_ef" || $8 == "add") {
    raw[$8, $5, ++raws[$8, $5]] = $10
}

# --- peers ---

# Compare within one round, because the machine may change between rounds.
{ in_round[$1, $4, $5, $8] = $9; if ($1 > rounds) rounds = $1 + 0 }

# Set middle to the median over rounds of the ratio of a pass to a peer.
function over_peer(who, ours, how,    key, r) {
    key = "peer" SUBSEP who SUBSEP ours SUBSEP how
    for (r = 1; r <= rounds; r++)
        if (in_round[r, "torch", who, "call"] > 0 && in_round[r, "beside", ours, how] > 0)
            value[key, ++count[key]] = in_round[r, "beside", ours, how] / \
                in_round[r, "torch", who, "call"]
    summarise(key)
}

function peer(theirs, ours,    who, mark) {
    who = theirs
    gsub(/ /, "~", who)
    if (!have("rate", "torch", who, "call")) return
    printf "| %s | %s | %s |", theirs, range("%.2f"), text_of(ours)
    if (!have("rate", "beside", ours, "encode")) { print " - | - | - |"; return }
    printf " %s |", range("%.2f")
    over_peer(who, ours, "encode")
    mark = theirs ~ /float16|chunks/ ? "" : (middle >= 20) ? " ✓ (20)" : " ✗ (20)"
    printf " %s |", range("%.1f") mark
    over_peer(who, ours, "memcpy")
    print " " range("%.1f") " |"
}

function peer_table() {
    if (!names["torch"] || !names["beside"]) return
    print "\n**Encode, compared with PyTorch and NumPy: GB/s, 64 MiB, one thread**\n"
    print "| peer | its rate | Tributary | its rate | ratio (goal) | memcpy / peer |"
    print "|---|--:|---|--:|--:|--:|"
    peer("torch.topk 0.1 %", "topk:ratio=0.001")
    peer("torch.topk 0.1 %", "dgc:ratio=0.001")
    peer("torch.topk 0.1 % chunks", "topk:ratio=0.001")
    peer("numpy argpartition 0.1 %", "topk:ratio=0.001")
    peer("numpy argpartition 0.1 %", "dgc:ratio=0.001")
    peer("torch.topk 1 %", "topk:ratio=0.01")
    peer("torch.topk 1 %", "dgc:ratio=0.01")
    peer("torch.topk 1 % chunks", "topk:ratio=0.01")
    peer("numpy argpartition 1 %", "topk:ratio=0.01")
    peer("torch quantize_per_tensor int8", "int8")
    peer("torch copy_ to float16", "f16")
    print "\nThe peers take the whole vector; \"chunks\": 65 536 elements at a time, as Tributary does."
    if (have("rate", "torch", "torch~copy_", "call"))
        printf "PyTorch copies float32 at %s GB/s", range("%.1f")
    if (have("rate", "beside", name["beside", 1], "memcpy"))
        printf ", memcpy at %s", range("%.1f")
    print "."
}

END {
    goal_table()
    peer_table()
    feedback_table()
    for (v = 1; v <= 3; v++) rates(vector[v])
}
