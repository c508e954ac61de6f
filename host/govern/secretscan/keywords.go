package secretscan

import (
	"iter"
	"math/bits"
	"strings"
)

// keywords finds words in a text in one pass, in upper and lower case. It is the automaton of Aho and Corasick as a
// table: a step is two loads. The loads of one step depend on the step before, so several parts of a text are read at
// the same time.
type keywords struct {
	words []string
	// class maps the bytes that occur in words to columns of next. All others have column 0.
	class [256]byte
	// next[state<<columnBits|class] is the next state. States from first on, a power of two, are those in which words
	// end.
	next  []uint16
	first uint16
	// ends has the indexes of the words that end in a state, starting with state first.
	ends [][]int
}

const (
	columnBits = 6
	// maxStates leaves half of the numbers to the states in which words end.
	maxStates = 1 << 15
)

// newKeywords returns the automaton for words, which are in lower case. It panics if one is longer than lead, or if
// they need more than 63 different bytes or 32,768 states.
func newKeywords(words []string) *keywords {
	k := &keywords{words: words}
	columns := byte(0)
	for _, word := range words {
		if len(word) > lead {
			panic("secretscan: the word is too long: " + word)
		}
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
	if len(nodes) > maxStates {
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
	inside := 0 // states in which no word ends
	for i := range nodes {
		if len(nodes[i].ends) == 0 {
			inside++
		}
	}
	k.first = 1 << bits.Len(uint(inside-1))
	state := make([]uint16, len(nodes))
	next := uint16(0) // the root stays first
	for i := range nodes {
		if ends := nodes[i].ends; len(ends) > 0 {
			state[i] = k.first + uint16(len(k.ends))
			k.ends = append(k.ends, ends)
		} else {
			state[i] = next
			next++
		}
	}
	k.next = make([]uint16, (int(k.first)+len(k.ends))<<columnBits)
	for node := range nodes {
		for class, to := range moves[node] {
			k.next[int(state[node])<<columnBits|class] = state[to]
		}
	}
}

const (
	// lanes is the number of parts of a text that are read at the same time, lane the size of a part in bytes. The
	// sizes are constants because the compiler leaves out the checks of the offsets then, a fifth of the time.
	lanes = 6
	lane  = 256
	// lead is the number of bytes before a part that lead to the state at its beginning: that of the longest word.
	lead = 40
)

// hit is a state in which words end, and the offset in the text after them.
type hit struct {
	state uint16
	end   int
}

// in returns the words in text with the offsets of their ends, in the order of these.
func (k *keywords) in(text string) iter.Seq2[int, []int] {
	return func(yield func(end int, words []int) bool) {
		from, to := 0, len(text)
		if to >= lead+lanes*lane {
			to = lead
		}
		hits := [lanes][]hit{k.read(text[:to])}
		for done := 0; ; {
			for _, part := range hits {
				for _, h := range part {
					if end := from + h.end; end > done && !yield(end, k.ends[h.state-k.first]) {
						return
					}
				}
			}
			if done = to; done == len(text) {
				return
			}
			to = min(done+lanes*lane, len(text)) // the last parts overlap those before them
			from = to - lanes*lane - lead
			k.readLanes(&hits, text[from:to])
		}
	}
}

// read finds the words in text.
func (k *keywords) read(text string) (hits []hit) {
	state := uint16(0)
	for i := range len(text) {
		if state = k.next[int(state)<<columnBits|int(k.class[text[i]])]; state >= k.first {
			hits = append(hits, hit{state, i + 1})
		}
	}
	return hits
}

// readLanes finds the words that end in the parts of text, which follow its first lead bytes.
func (k *keywords) readLanes(hits *[lanes][]hit, text string) {
	for i := range hits {
		hits[i] = hits[i][:0]
	}
	next, class, first := k.next, &k.class, k.first
	var a, b, c, d, e, f uint16
	text = text[:lead+lanes*lane]
	for i := range lead + lane {
		a = next[int(a)<<columnBits|int(class[text[i]])]
		b = next[int(b)<<columnBits|int(class[text[i+lane]])]
		c = next[int(c)<<columnBits|int(class[text[i+2*lane]])]
		d = next[int(d)<<columnBits|int(class[text[i+3*lane]])]
		e = next[int(e)<<columnBits|int(class[text[i+4*lane]])]
		f = next[int(f)<<columnBits|int(class[text[i+5*lane]])]
		if a|b|c|d|e|f < first || i < lead { // first is a power of two
			continue
		}
		for l, state := range [lanes]uint16{a, b, c, d, e, f} {
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
