package console

import (
	"encoding/base64"
	"strconv"
)

// listJSON is a page of a list.
type listJSON[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

func listed[T any](items []T) *listJSON[T] { return &listJSON[T]{Items: items} }

const (
	usualLimit = 50
	maxLimit   = 200
)

// limit returns the requested number of items per page.
func (q *request) limit() (int, error) {
	text := q.param("limit")
	if text == "" {
		return usualLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, invalid("limit must be a number from 1 to %d", maxLimit)
	}
	return n, nil
}

// page returns the page of a list, sorted by key, that the request asks for: the items after the key in its cursor.
func page[T any](q *request, all []T, key func(T) string) (*listJSON[T], error) {
	limit, err := q.limit()
	if err != nil {
		return nil, err
	}
	after, err := parseCursor(q.param("cursor"))
	if err != nil {
		return nil, err
	}
	answer := &listJSON[T]{Items: []T{}}
	for _, item := range all {
		if after != "" && key(item) <= after {
			continue
		}
		if len(answer.Items) == limit {
			answer.Next = formatCursor(key(answer.Items[limit-1]))
			break
		}
		answer.Items = append(answer.Items, item)
	}
	return answer, nil
}

// maxCursor bounds a cursor, in bytes.
const maxCursor = 2 << 10

// formatCursor encodes a key as a cursor, which clients send back unchanged.
func formatCursor(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

func parseCursor(text string) (key string, err error) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(text) > maxCursor {
		return "", invalid("the cursor is not from this list")
	}
	return string(data), nil
}
