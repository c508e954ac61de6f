package main

import (
	"context"
	"unicode/utf8"
)

const (
	// standardBudget limits what an answer or a prompt quotes of agents' texts where the caller does not say, in
	// characters.
	standardBudget = 20_000
	// entryOverhead is an entry's size beside its texts, for ids, times and names of fields.
	entryOverhead = 100
	// leastEntry is the length that the first entry of a list may have even where the budget is spent, in characters,
	// so that every page has an entry.
	leastEntry = 500
)

// budget is the number of characters that may still be quoted.
type budget struct {
	left int
	language
}

func newBudget(ctx context.Context, characters int) *budget {
	if characters == 0 {
		characters = standardBudget
	}
	return &budget{characters, languageOf(ctx)}
}

// clip shortens texts that together pass the budget, longer ones more, and says in each how much is missing.
func (b *budget) clip(texts ...*string) {
	for i, text := range texts {
		if text == nil {
			continue
		}
		share, n := max(b.left, 0)/(len(texts)-i), utf8.RuneCountInString(*text)
		if n > share {
			*text = string([]rune(*text)[:share]) + b.sprintf("… [%d more characters]", "…［残り %d 文字］", n-share)
		}
		b.left -= min(n, share)
	}
}

// charge takes an entry with texts from the budget, or reports that it does not fit. The first entry of a list always
// fits: it is clipped.
func (b *budget) charge(first bool, texts ...*string) bool {
	size := entryOverhead
	for _, text := range texts {
		if text != nil {
			size += utf8.RuneCountInString(*text)
		}
	}
	if size <= b.left {
		b.left -= size
		return true
	}
	if first {
		b.left = max(b.left-entryOverhead, leastEntry)
		b.clip(texts...)
		b.left = 0
	}
	return first
}

// fit returns how many of the entries, from the first on, are within the budget.
func fit[T any](b *budget, entries []T, texts func(*T) []*string) int {
	for i := range entries {
		if !b.charge(i == 0, texts(&entries[i])...) {
			return i
		}
	}
	return len(entries)
}
