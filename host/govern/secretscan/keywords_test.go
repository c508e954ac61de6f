package secretscan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// FuzzKeywords compares the automaton with a search for each word.
func FuzzKeywords(f *testing.F) {
	f.Add("a key, a KEY, monkeys", "key,ey,monkey,k")
	f.Add(strings.Repeat("x", lanes*lane-2)+"keyring"+strings.Repeat("ke", lane), "key,keyring,ring,kek")
	f.Add(strings.Repeat("abab", lanes*lane), "abab,bab,ab,b")
	f.Add("", "a")
	f.Fuzz(func(t *testing.T, text, list string) {
		var words []string
		for word := range strings.SplitSeq(strings.ToLower(list), ",") {
			if word != "" && len(words) < 20 && !slices.Contains(words, word) {
				words = append(words, word[:min(len(word), 12)])
			}
		}
		slices.Sort(words)
		words = slices.Compact(words)
		if len(charactersOf(words)) >= 1<<columnBits {
			return
		}
		k := newKeywords(words)
		var got, want []string
		for end, found := range k.in(text) {
			for _, word := range found {
				got = append(got, fmt.Sprint(end, words[word]))
			}
		}
		small := lowerASCII(text)
		for end := range len(text) + 1 {
			for _, word := range words {
				if strings.HasSuffix(small[:end], word) {
					want = append(want, fmt.Sprint(end, word))
				}
			}
		}
		slices.Sort(got) // words that end at one place have no order
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q in %q: %v, want %v", words, text, got, want)
		}
		if k.hasAny(text) != (len(want) > 0) {
			t.Errorf("%q in %q", words, text)
		}
	})
}

func charactersOf(words []string) map[byte]bool {
	set := map[byte]bool{}
	for _, c := range []byte(strings.Join(words, "")) {
		set[c] = true
	}
	return set
}

// lowerASCII converts only ASCII letters, which keeps offsets.
func lowerASCII(text string) string {
	small := []byte(text)
	for i, c := range small {
		if 'A' <= c && c <= 'Z' {
			small[i] = c + 'a' - 'A'
		}
	}
	return string(small)
}

// TestKeywordOrder: the words are found in the order of their ends, across the parts that are read at the same time.
func TestKeywordOrder(t *testing.T) {
	t.Parallel()
	k := newKeywords([]string{"key"})
	for _, size := range []int{1, lane - 2, lane + 1, lanes*lane - 1, lanes * lane, 3*lanes*lane + 7} {
		text := strings.Repeat("a key ", size/6+1)
		last, n := 0, 0
		for end := range k.in(text) {
			if n++; end <= last || text[end-3:end] != "key" {
				t.Fatalf("%d bytes: %d after %d", len(text), end, last)
			}
			last = end
		}
		if n != len(text)/6 {
			t.Errorf("%d bytes: %d words, want %d", len(text), n, len(text)/6)
		}
	}
}
