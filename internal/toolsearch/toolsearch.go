// Package toolsearch ranks tools by the words of a query, in Japanese and English, without a model.
//
// New builds an Index of Documents; Index.Search returns those that match a query, best first. Words are weighted by
// their rarity and by the field in which they stand (BM25, with weighted fields). Text without spaces between words is
// indexed by pairs of characters: a dictionary for Japanese would be tens of megabytes, and a full-text engine (bleve)
// 12.9 MB.
package toolsearch

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"
)

// Document describes a tool to the index. Texts may be in several languages.
type Document struct {
	Name string
	// Titles, Descriptions and Arguments (names and descriptions) are the other fields, by falling weight.
	Titles, Descriptions, Arguments []string
}

// Weights of the fields.
const (
	nameWeight        = 6
	titleWeight       = 4
	descriptionWeight = 2
	argumentsWeight   = 1
)

// Parameters of BM25: how soon repeated words count no more, and how much long documents are discounted.
const (
	saturation = 1.2
	lengthPart = 0.5
)

// maxDocumentTerms bounds the terms of a document that are indexed: descriptions of upstream servers may be long.
const maxDocumentTerms = 2000

// Index is an immutable index of documents, safe for concurrent use.
type Index struct {
	postings map[string][]posting
	// discounts are the parts of the length in the score, by document.
	discounts []float32
}

// posting is a document with the weighted number of a term in it.
type posting struct {
	document int32
	weight   float32
}

// New returns an index of documents.
func New(documents []Document) *Index {
	x := &Index{postings: map[string][]posting{}, discounts: make([]float32, len(documents))}
	total := 0
	for i, d := range documents {
		weights, count := map[string]float32{}, 0
		add := func(weight float32, texts ...string) {
			for _, text := range texts {
				for term := range terms(text) {
					if count++; count > maxDocumentTerms {
						return
					}
					weights[term] += weight
				}
			}
		}
		add(nameWeight, d.Name)
		add(titleWeight, d.Titles...)
		add(descriptionWeight, d.Descriptions...)
		add(argumentsWeight, d.Arguments...)
		for term, weight := range weights {
			x.postings[term] = append(x.postings[term], posting{int32(i), weight})
		}
		x.discounts[i] = float32(count)
		total += count
	}
	mean := max(1, float32(total)/float32(max(1, len(documents))))
	for i := range x.discounts {
		x.discounts[i] = saturation * (1 - lengthPart + lengthPart*x.discounts[i]/mean)
	}
	return x
}

// Search returns the positions of the documents that have a word of the query, best first. Documents that match equally
// well stay in their order.
func (x *Index) Search(query string) []int {
	scores := map[int32]float64{}
	seen := map[string]bool{}
	for term := range terms(query) {
		if seen[term] || len(seen) == maxQueryTerms {
			continue
		}
		seen[term] = true
		list := x.postings[term]
		n, all := float64(len(list)), float64(len(x.discounts))
		rarity := math.Log(1 + (all-n+0.5)/(n+0.5))
		for _, p := range list {
			scores[p.document] += rarity * float64(p.weight/(p.weight+x.discounts[p.document]))
		}
	}
	found := make([]int, 0, len(scores))
	for document := range scores {
		found = append(found, int(document))
	}
	slices.SortFunc(found, func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[int32(b)], scores[int32(a)]), cmp.Compare(a, b))
	})
	return found
}

// maxQueryTerms bounds the terms of a query that count.
const maxQueryTerms = 64

// terms yields the terms of a text: stems of English words, and pairs of characters of scripts that do not
// separate words.
func terms(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		text = norm.NFKC.String(text)
		var word []rune
		var kind, before rune // 0 nothing, 'w' word, 'c' characters
		flush := func() bool {
			defer func() { word = word[:0] }()
			switch {
			case len(word) == 0:
				return true
			case kind == 'w':
				return yield(english.Stem(strings.ToLower(string(word)), true))
			case len(word) == 1:
				return yield(string(word))
			}
			for i := range len(word) - 1 {
				if !yield(string(word[i : i+2])) {
					return false
				}
			}
			return true
		}
		for _, r := range text {
			now := kindOf(r)
			camel := now == 'w' && kind == 'w' && unicode.IsUpper(r) && unicode.IsLower(before)
			if (now != kind || camel) && !flush() {
				return
			}
			if kind, before = now, r; now != 0 {
				word = append(word, r)
			}
		}
		flush()
	}
}

func kindOf(r rune) rune {
	switch {
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai), r == 'ー':
		return 'c'
	case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
		return 'w'
	}
	return 0
}
