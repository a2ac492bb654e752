# SPDX-License-Identifier: BSD-3-Clause
#
# medians.awk and rxe.awk runs.csv: print the results of rxe.sh as Markdown tables.
#
# Each cell is the median over launches, with the least and the greatest. Ratios are of
# medians, followed by the goal and whether it is reached.

BEGIN {
    FS = ","
    title["latency"] = "µs one way"
    title["bandwidth"] = "MB/s"
    title["all-reduce"] = "µs"
    # Numerator, denominator and goal: "<" at most, ">" at least.
    ratios["latency"] = "trib ib_write_lat <1.1;trib ib_send_lat"
    ratios["bandwidth"] = "trib ib_write_bw >0.97"
    ratios["all-reduce"] = "bound trib >0.9;openmpi-tcp trib >1;openmpi-openib trib >1;openmpi-ucx trib >1;openmpi-tcp trib-tcp >1;openmpi-sm trib-shm >1"
}

FNR == 1 { next }

{
    key = $3 SUBSEP $2 SUBSEP $4
    value[key, ++count[key]] = $5 * ($3 == "bandwidth" ? 1e3 : 1)
    if (!($3 in known_what)) { known_what[$3] = 1; what[++kinds] = $3 }
    if (!(($3, $2) in known_name)) { known_name[$3, $2] = 1; name[$3, ++names[$3]] = $2 }
    if (!(($3, $4) in known_size)) { known_size[$3, $4] = 1; size[$3, ++sizes[$3]] = $4 }
}

function ratio_cell(a, b, goal,    text, met) {
    text = ratio(a, b)
    if (text == "-" || goal == "") return text
    met = goal ~ /^</ ? a / b <= substr(goal, 2) : a / b >= substr(goal, 2)
    return text (met ? " ✓" : " ✗")
}

function row(w, b,    i, n, key, line, mid, of, part) {
    for (i = 1; i <= names[w]; i++) {
        key = w SUBSEP name[w, i] SUBSEP b
        if (!(key in count)) { line = line " - |"; continue }
        summarise(key)
        mid[name[w, i]] = middle
        line = line " " number(middle) " [" number(low) "-" number(high) "] |"
    }
    n = split(ratios[w], of, ";")
    for (i = 1; i <= n; i++) {
        split(of[i] "  ", part, " ")
        if (shown(w, part)) line = line " " ratio_cell(mid[part[1]], mid[part[2]], part[3]) " |"
    }
    print "| " size_text(b) " |" line
}

function shown(w, part) { return (w, part[1]) in known_name && (w, part[2]) in known_name }

function goal_text(goal) {
    if (goal == "") return ""
    return " (at " (goal ~ /^</ ? "most " : "least ") substr(goal, 2) ")"
}

function table(w,    i, n, head, rule, of, part) {
    printf "\n**%s: %s, median of launches [least-greatest]**\n\n", w, title[w]
    head = "| size |"
    rule = "|---|"
    for (i = 1; i <= names[w]; i++) { head = head " " name[w, i] " |"; rule = rule "--:|" }
    n = split(ratios[w], of, ";")
    for (i = 1; i <= n; i++) {
        split(of[i] "  ", part, " ")
        if (!shown(w, part)) continue
        head = head " " part[1] " / " part[2] goal_text(part[3]) " |"
        rule = rule "--:|"
    }
    print head
    print rule
    for (i = 1; i <= sizes[w]; i++) row(w, size[w, i])
}

END { for (i = 1; i <= kinds; i++) table(what[i]) }
