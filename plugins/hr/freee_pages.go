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

// pages reads all pages of a list and calls each with every item, once also where offset paging repeats one. key names
// the array in the answer; "" means that the answer is the array itself. Besides the number of items it returns freee's
// own count, -1 where there is none.
func (f *freee) pages(ctx context.Context, path, key string, query url.Values, each func(object)) (items, total int,
	err error) {
	seen := map[string]bool{}
	defer f.cancel(path + "?")
	query.Set("limit", strconv.Itoa(freeePage))
	for page := range maxPages {
		query.Set("offset", strconv.Itoa(page*freeePage))
		response, err := f.get(ctx, path, query)
		if err != nil {
			return 0, 0, err
		}
		d := f.document()
		list, total := listOf(d, response.Body, key)
		for _, o := range list {
			if id := o.id("id"); !seen[id] {
				seen[id] = true
				each(o)
			}
		}
		if d.err != nil {
			return 0, 0, d.err
		}
		if isLast(page, len(list), total) {
			return len(seen), total, nil
		}
		for next := page + 1; next*freeePage < total; next++ {
			query.Set("offset", strconv.Itoa(next*freeePage))
			if !f.start(ctx, path, query) {
				break
			}
		}
	}
	return 0, 0, f.lang.errorf("freeeの %s が%dページを超えました。", "freee's %s has more than %d pages", path, maxPages)
}

func listOf(d *document, body []byte, key string) (list []object, total int) {
	if key == "" {
		return d.parseList(body, "employees"), -1
	}
	answer := d.parse(body)
	return answer.children(key), int(answer.number("total_count"))
}

// isLast goes by freee's count, and without one by the first page that is not full. An empty page is the last in any
// case.
func isLast(page, items, total int) bool {
	if total < 0 {
		return items < freeePage
	}
	return items == 0 || (page+1)*freeePage >= total
}
