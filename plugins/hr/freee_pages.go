package main

import (
	"context"
	"net/url"
	"strconv"
)

const (
	// freeePage is the largest page that freee serves.
	freeePage = 100
	// maxPages bounds a list, at 50,000 people.
	maxPages = 500
)

// pages reads all pages of a list. key names its array in the answer; "" means that the answer is the array itself. Items that offset
// paging repeats are given once. total is freee's own count, or -1 where it gives none.
func (f *freee) pages(ctx context.Context, path, key string, query url.Values) (items []object, total int, err error) {
	seen := map[string]bool{}
	total = -1
	query.Set("limit", strconv.Itoa(freeePage))
	for page := range maxPages {
		query.Set("offset", strconv.Itoa(page*freeePage))
		response, err := f.get(ctx, path, query)
		if err != nil {
			return nil, 0, err
		}
		d := f.document()
		var list []object
		if key == "" {
			list = d.parseList(response.Body, "employees")
		} else {
			answer := d.parse(response.Body)
			list, total = answer.children(key), int(answer.number("total_count"))
		}
		items = appendNew(items, list, seen)
		if d.err != nil {
			return nil, 0, d.err
		}
		if len(list) < freeePage && total < 0 || (page+1)*freeePage >= total && total >= 0 || len(list) == 0 {
			return items, total, nil
		}
	}
	return nil, 0, f.lang.errorf("freeeの %s が%dページを超えました。", "freee's %s has more than %d pages", path, maxPages)
}

// appendNew appends the objects whose ids were not seen before.
func appendNew(items, list []object, seen map[string]bool) []object {
	for _, o := range list {
		if id := o.id("id"); !seen[id] {
			seen[id] = true
			items = append(items, o)
		}
	}
	return items
}
