# SPDX-License-Identifier: BSD-3-Clause
#
# medians.awk and allreduce.awk -v place=in|out -v cores=N -v over=best|tcp limit.csv runs.csv:
# print the results of allreduce.sh as Markdown tables.
#
# Each cell is the median over launches of the launch's p50, with the least and the
# greatest launch. A ratio is the best peer's time over Tributary's: 2 is twice as fast.

BEGIN { FS = "," }

FNR == 1 { file++; next }

# Best repeat of the best copy kernel of each size and of the update in place, GB/s read
# and written.
file == 1 {
    how = $3 == "update" ? "update" : "copy"
    if ($2 == cores && $6 > limit[how, $1]) limit[how, $1] = $6 + 0
    next
}

{
    state = $2 == $3 ? $2 : "mixed"
    add("all")
    if (state == "near" || state == "far") { add(state); seen[state] = 1 }
    launches[state]++
    if (!($4 in known_name)) { known_name[$4] = 1; name[++names] = $4 }
    if (!($5 in known_ranks)) { known_ranks[$5] = 1; ranks[++n_ranks] = $5 }
    if (!($6 in known_size)) { known_size[$6] = 1; size[++sizes] = $6 }
}

function add(group,    key) {
    key = group SUBSEP $4 SUBSEP $5 SUBSEP $6
    value[key, ++count[key]] = $9 + 0
}

function is_ours(label) { return label ~ /^trib-/ }

# Goals: up to 32 KiB for 2 and 4 ranks, above for 2 ranks. Over TCP the kind of memory does not
# matter, and its bandwidth is not the limit.
function goal(memory, n, b) {
    if (over == "tcp") return 1
    if (b <= 32768) return 1
    if (n != 2) return 0
    if (b < 1048576) return 1
    return memory == "alloc" ? 2 : 1.2
}

function ratio_cell(best, ours, want,    text) {
    text = ratio(best, ours)
    if (text == "-" || want == 0) return text
    return text (best / ours >= want ? " ✓" : " ✗") " (" want ")"
}

function row(group, n, b,    i, key, line, best, mid) {
    line = "| " size_text(b) " |"
    best = 0
    for (i = 1; i <= names; i++) {
        key = group SUBSEP name[i] SUBSEP n SUBSEP b
        if (!(key in count)) { line = line " - |"; continue }
        summarise(key)
        mid[name[i]] = middle
        line = line " " number(middle) " [" number(low) "-" number(high) "] |"
        if (!is_ours(name[i]) && (best == 0 || middle < best)) best = middle
    }
    line = line " " ratio_cell(best, mid["trib-alloc"], goal("alloc", n, b)) " |"
    line = line " " ratio_cell(best, mid["trib-malloc"], goal("malloc", n, b)) " |"
    if (over == "tcp") line = line " " ratio(mid["trib-sealed"], mid["trib-alloc"]) " |"
    if (n == 2 && over != "tcp") {
        line = line " " share("copy", b, mid["trib-alloc"]) " |"
        if (place == "in") line = line " " share("update", b, mid["trib-alloc"]) " |"
    }
    print line
}

# 2 ranks must read two vectors and write two: shortest time for this / measured time.
function share(how, b, us) {
    if (!(limit[how, b] > 0 && us > 0)) return "-"
    return sprintf("%.2f", 4 * b / (limit[how, b] * 1e3) / us)
}

function table(group, n,    i, head, rule) {
    printf "\n**%d ranks, %s: µs, median of launches [least-greatest]**\n\n", n, \
        group == "all" ? "all launches" : "launches with the cores " group
    head = "| size |"
    rule = "|---|"
    for (i = 1; i <= names; i++) { head = head " " name[i] " |"; rule = rule "--:|" }
    head = head " best peer / alloc (goal) |"
    rule = rule "--:|"
    head = head " best peer / malloc (goal) |"
    rule = rule "--:|"
    if (over == "tcp") { head = head " sealed / alloc |"; rule = rule "--:|" }
    if (n == 2 && over != "tcp") { head = head " alloc, share of copy bandwidth |"; rule = rule "--:|" }
    if (n == 2 && over != "tcp" && place == "in") { head = head " of update bandwidth |"; rule = rule "--:|" }
    print head
    print rule
    for (i = 1; i <= sizes; i++) row(group, n, size[i])
}

END {
    printf "Core probe around the rows:"
    for (state in launches) printf " %s %d", state, launches[state]
    print "."
    for (i = 1; i <= n_ranks; i++) {
        table("all", ranks[i])
        if (seen["near"] && seen["far"]) {
            table("near", ranks[i])
            table("far", ranks[i])
        }
    }
    if (over == "tcp") exit
    print "\nBandwidth of " cores " cores, best kernel and repeat, GB/s read and written, copy (update in place):"
    for (i = 1; i <= sizes; i++)
        if (limit["copy", size[i]] > 0)
            printf "%s %.1f (%.1f); ", size_text(size[i]), limit["copy", size[i]], \
                limit["update", size[i]]
    print "\nShare: 4 vectors (2 read, 2 written) over that bandwidth, over p50."
}
