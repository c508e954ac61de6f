package approval

import (
	"slices"
	"unicode/utf8"

	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/visible"
)

// edit is a line of a diff: kept (' '), removed ('-') or added ('+').
type edit struct {
	kind byte
	text string
}

// maxRounds bounds how often diff divides a text, and so its work: each round sorts the lines once.
const maxRounds = 8

// diff compares lines. Lines that both sides have exactly once are anchors; the parts between anchors are compared in
// the same way. Its work is limited for any input; in exchange, a diff need not be the shortest.
func diff(before, after []string, rounds int) (edits []edit) {
	add := func(kind byte, lines []string) {
		for _, line := range lines {
			edits = append(edits, edit{kind, line})
		}
	}
	prefix := 0
	for prefix < min(len(before), len(after)) && before[prefix] == after[prefix] {
		prefix++
	}
	add(' ', before[:prefix])
	before, after = before[prefix:], after[prefix:]
	suffix := 0
	for suffix < min(len(before), len(after)) && before[len(before)-1-suffix] == after[len(after)-1-suffix] {
		suffix++
	}
	kept := before[len(before)-suffix:]
	before, after = before[:len(before)-suffix], after[:len(after)-suffix]
	var common [][2]int
	if rounds > 0 {
		common = anchors(before, after)
	}
	if len(common) == 0 {
		add('-', before)
		add('+', after)
	} else {
		x, y := 0, 0
		for _, at := range append(common, [2]int{len(before), len(after)}) {
			edits = append(edits, diff(before[x:at[0]], after[y:at[1]], rounds-1)...)
			x, y = at[0], at[1]
		}
	}
	add(' ', kept)
	return edits
}

// anchors returns the positions of the lines that are unique on both sides, as far as they have the same order there:
// the longest increasing subsequence.
func anchors(before, after []string) [][2]int {
	type count struct{ before, after, x, y int }
	counts := map[string]*count{}
	at := func(line string) *count {
		if counts[line] == nil {
			counts[line] = &count{}
		}
		return counts[line]
	}
	for i, line := range before {
		c := at(line)
		c.before, c.x = c.before+1, i
	}
	for i, line := range after {
		c := at(line)
		c.after, c.y = c.after+1, i
	}
	var pairs [][2]int // in the order of before
	for _, line := range before {
		if c := counts[line]; c.before == 1 && c.after == 1 {
			pairs = append(pairs, [2]int{c.x, c.y})
		}
	}
	var ends []int // ends[n] is the pair with the smallest y at the end of a sequence of n+1
	previous := make([]int, len(pairs))
	for i, pair := range pairs {
		n, _ := slices.BinarySearchFunc(ends, pair[1], func(end, y int) int { return pairs[end][1] - y })
		previous[i] = -1
		if n > 0 {
			previous[i] = ends[n-1]
		}
		ends = append(ends[:n], append([]int{i}, ends[min(n+1, len(ends)):]...)...)
	}
	var list [][2]int
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = previous[i] {
			list = append(list, pairs[i])
		}
	}
	slices.Reverse(list)
	return list
}

// Limits of a shown diff.
const (
	maxDiffLines   = 60
	maxDiffContext = 2
	maxDiffLine    = 160 // characters
	shownBefore    = 20  // characters that long lines have in common, before their first difference
)

// hunks returns the changes with a few lines around them, after the number of their first line, and how many changed
// lines were left out.
func hunks(edits []edit) (list []Hunk, rest int) {
	focus(edits)
	near := func(i int) bool {
		around := edits[max(0, i-maxDiffContext):min(len(edits), i+maxDiffContext+1)]
		return slices.ContainsFunc(around, func(e edit) bool { return e.kind != ' ' })
	}
	line, lines, open := 1, 0, false // line counts lines of the new text
	for i, e := range edits {
		switch {
		case lines >= maxDiffLines:
			if e.kind != ' ' {
				rest++
			}
		case near(i):
			if !open {
				list = append(list, Hunk{Line: line})
			}
			last := &list[len(list)-1]
			last.Lines = append(last.Lines, string(e.kind)+" "+visible.Mark(clip.Runes(e.text, maxDiffLine)))
			open, lines = true, lines+1
		default:
			open = false
		}
		if e.kind != '-' {
			line++
		}
	}
	return list, rest
}

// focus cuts the common start of long lines that replace each other, so that their first difference is in view.
func focus(edits []edit) {
	for i := 0; i < len(edits); {
		removed, added := i, i
		for ; added < len(edits) && edits[added].kind == '-'; added++ {
		}
		end := added
		for ; end < len(edits) && edits[end].kind == '+'; end++ {
		}
		for n := range min(added-removed, end-added) {
			before, after := &edits[removed+n].text, &edits[added+n].text
			if max(len(*before), len(*after)) > maxDiffLine {
				at := commonStart(*before, *after)
				*before, *after = from(*before, at), from(*after, at)
			}
		}
		i = max(end, i+1)
	}
}

// commonStart returns how many bytes of whole characters two texts have in common at their start.
func commonStart(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	return n
}

// from returns the text from a few characters before at on.
func from(text string, at int) string {
	for range shownBefore {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	if at == 0 {
		return text
	}
	return "…" + text[at:]
}
