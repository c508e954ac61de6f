package secretscan

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
)

// keywords finds words in a text in one pass, in upper and lower case. It is the automaton of Aho and Corasick as a
// table: a step is two loads. The loads of one step depend on the step before, so several parts of a text are read at
// the same time.
type keywords struct {
	words []string
	// class maps the bytes that occur in words to columns of next. All others have column 0.
	class [256]byte
	// next[state<<columnBits|class] is the next state. States from first on are those in which words end.
	next  []uint16
	first uint16
	// ends has the indexes of the words that end in a state, starting with state first.
	ends [][]int
	// longest is the length of the longest word.
	longest int
}

const columnBits = 6

// newKeywords returns the automaton for words, which are in lower case. It panics if they need more than 63 different
// bytes or 65,536 states.
func newKeywords(words []string) *keywords {
	k := &keywords{words: words}
	columns := byte(0)
	for _, word := range words {
		k.longest = max(k.longest, len(word))
		for _, c := range []byte(word) {
			if k.class[c] == 0 {
				columns++
				k.class[c] = columns
			}
		}
	}
	for c := byte('A'); c <= 'Z'; c++ {
		k.class[c] = k.class[c+'a'-'A']
	}
	if columns >= 1<<columnBits {
		panic("secretscan: the words have too many different characters")
	}
	k.build()
	return k
}

// node is a state while the automaton is built.
type node struct {
	children map[byte]int
	ends     []int
	// fallback is the node of the longest other suffix that begins a word.
	fallback int
}

func (k *keywords) build() {
	nodes := []node{{children: map[byte]int{}}}
	for i, word := range k.words {
		at := 0
		for _, c := range []byte(word) {
			class := k.class[c]
			child, ok := nodes[at].children[class]
			if !ok {
				child = len(nodes)
				nodes = append(nodes, node{children: map[byte]int{}})
				nodes[at].children[class] = child
			}
			at = child
		}
		nodes[at].ends = append(nodes[at].ends, i)
	}
	if len(nodes) > math.MaxUint16 {
		panic("secretscan: the words have too many states")
	}
	moves := make([][1 << columnBits]int, len(nodes))
	for queue := []int{0}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for class := range moves[at] {
			child, ok := nodes[at].children[byte(class)]
			if !ok {
				moves[at][class] = moves[nodes[at].fallback][class] // of the root: the root
				continue
			}
			if at != 0 {
				nodes[child].fallback = moves[nodes[at].fallback][class]
			}
			fallback := &nodes[nodes[child].fallback] // which is nearer to the root, and so complete
			nodes[child].ends = append(nodes[child].ends, fallback.ends...)
			moves[at][class] = child
			queue = append(queue, child)
		}
	}
	k.number(nodes, moves)
}

// number numbers the states so that those in which words end come last, and fills the table.
func (k *keywords) number(nodes []node, moves [][1 << columnBits]int) {
	order := make([]int, len(nodes)) // the root stays first
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(min(1, len(nodes[a].ends)), min(1, len(nodes[b].ends)))
	})
	state := make([]uint16, len(nodes))
	for i, node := range order {
		state[node] = uint16(i)
		if ends := nodes[node].ends; len(ends) > 0 {
			if k.ends == nil {
				k.first = uint16(i)
			}
			k.ends = append(k.ends, ends)
		}
	}
	if k.ends == nil {
		k.first = uint16(len(nodes)) // there are no words
	}
	k.next = make([]uint16, len(nodes)<<columnBits)
	for node := range nodes {
		for class, to := range moves[node] {
			k.next[int(state[node])<<columnBits|class] = state[to]
		}
	}
}

// lanes is the number of parts of a text that are read at the same time, lane the size of a part in bytes.
const (
	lanes = 4
	lane  = 1 << 10
)

// hit is a state in which words end, and the offset in the text after them.
type hit struct {
	state uint16
	end   int
}

// in returns the words in text with the offsets of their ends, in the order of these.
func (k *keywords) in(text string) iter.Seq2[int, []int] {
	return func(yield func(end int, words []int) bool) {
		var hits [lanes][]hit
		for at := 0; at < len(text); {
			if len(text)-at < lanes*lane {
				hits[0] = k.read(hits[0][:0], text, at, len(text))
				at = len(text)
				for i := range hits[1:] {
					hits[1+i] = hits[1+i][:0]
				}
			} else {
				k.readLanes(&hits, text, at)
				at += lanes * lane
			}
			for _, part := range hits {
				for _, h := range part {
					if !yield(h.end, k.ends[h.state-k.first]) {
						return
					}
				}
			}
		}
	}
}

// enter returns the state at an offset of text.
func (k *keywords) enter(text string, at int) (state uint16) {
	for _, c := range []byte(text[max(0, at-k.longest):at]) {
		state = k.next[int(state)<<columnBits|int(k.class[c])]
	}
	return state
}

// read finds the words that end in a part of text.
func (k *keywords) read(hits []hit, text string, from, to int) []hit {
	state := k.enter(text, from)
	for i := from; i < to; i++ {
		if state = k.next[int(state)<<columnBits|int(k.class[text[i]])]; state >= k.first {
			hits = append(hits, hit{state, i + 1})
		}
	}
	return hits
}

// readLanes finds the words that end in the parts of text after an offset.
func (k *keywords) readLanes(hits *[lanes][]hit, text string, at int) {
	next, class, first := k.next, &k.class, k.first
	a, b, c, d := k.enter(text, at), k.enter(text, at+lane), k.enter(text, at+2*lane), k.enter(text, at+3*lane)
	for i := range hits {
		hits[i] = hits[i][:0]
	}
	text = text[:at+lanes*lane]
	for i := at; i < at+lane; i++ {
		a = next[int(a)<<columnBits|int(class[text[i]])]
		b = next[int(b)<<columnBits|int(class[text[i+lane]])]
		c = next[int(c)<<columnBits|int(class[text[i+2*lane]])]
		d = next[int(d)<<columnBits|int(class[text[i+3*lane]])]
		if max(a, b, c, d) < first {
			continue
		}
		for l, state := range [lanes]uint16{a, b, c, d} {
			if state >= first {
				hits[l] = append(hits[l], hit{state, i + l*lane + 1})
			}
		}
	}
}

// hasAny reports whether text has one of the words.
func (k *keywords) hasAny(text string) bool {
	for range k.in(text) {
		return true
	}
	return false
}

// lowered returns words in lower case.
func lowered(words []string) []string {
	list := make([]string, len(words))
	for i, word := range words {
		list[i] = strings.ToLower(word)
	}
	return list
}
