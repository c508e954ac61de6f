package main

import (
	"encoding/json"
	"errors"
	"strings"
)

// areaTable is JMA's area.json. A code is unique only within its level: 011000 is a region, an office and a class10
// area.
type areaTable struct {
	regions, offices, class10s, class15s, class20s []area
}

// area is one entry of a level; parent is a code of the level above it.
type area struct{ code, name, en, kana, parent string }

// excerpt reports whether the table lacks municipalities, as the one of the recordings and of the fakes does. JMA lists
// about 1,900 entries.
func (t *areaTable) excerpt() bool { return len(t.class20s) < 1500 }

var errNoAreas = errors.New("it lists no areas")

// parseAreas reads area.json. It fails if data is not JSON or has no municipalities.
//
// A call that needs the table cannot keep it for the next one, and decoding its 2,400 entries with encoding/json takes
// a guest some 25 ms. Checking that it is JSON and then picking out the strings takes about 6.
func parseAreas(data []byte) (*areaTable, error) {
	if !json.Valid(data) {
		return nil, errors.New("it is not JSON")
	}
	table := &areaTable{class20s: make([]area, 0, 2000)}
	levels := map[string]*[]area{
		"centers": &table.regions, "offices": &table.offices, "class10s": &table.class10s,
		"class15s": &table.class15s, "class20s": &table.class20s,
	}
	r := &reader{text: strings.ToValidUTF8(string(data), "\uFFFD")}
	r.object(func(level string) {
		into, ok := levels[level]
		if !ok {
			r.skip()
			return
		}
		r.object(func(code string) { *into = append(*into, r.area(code)) })
	})
	if len(table.class10s) == 0 || len(table.class20s) == 0 {
		return nil, errNoAreas
	}
	return table, nil
}

// reader walks over text that is known to be JSON.
type reader struct {
	text string
	at   int
}

func (r *reader) area(code string) area {
	a := area{code: code}
	r.object(func(key string) {
		switch {
		case r.peek() != '"':
			r.skip()
		case key == "name":
			a.name = r.string()
		case key == "enName":
			a.en = r.string()
		case key == "kana":
			a.kana = r.string()
		case key == "parent":
			a.parent = r.string()
		default:
			r.skip()
		}
	})
	return a
}

// object calls value for each key of an object; value must consume the key's value. What is not an object is skipped.
func (r *reader) object(value func(key string)) {
	if r.peek() != '{' {
		r.skip()
		return
	}
	r.at++
	for r.peek() != '}' {
		key := r.string()
		r.peek()
		r.at++ // the colon
		value(key)
		if r.peek() == ',' {
			r.at++
		}
	}
	r.at++
}

// peek returns the next byte that is not white space.
func (r *reader) peek() byte {
	for {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\r', '\n':
			r.at++
		default:
			return c
		}
	}
}

func (r *reader) string() string {
	r.peek()
	start := r.at
	escaped := false
	for r.at++; r.text[r.at] != '"'; r.at++ {
		if r.text[r.at] == '\\' {
			escaped = true
			r.at++
		}
	}
	r.at++
	if !escaped {
		return r.text[start+1 : r.at-1]
	}
	var s string
	json.Unmarshal([]byte(r.text[start:r.at]), &s) // it is valid
	return s
}

// skip passes over any value.
func (r *reader) skip() {
	depth := 0
	for {
		switch r.peek() {
		case '"':
			r.string()
		case '{', '[':
			depth++
			r.at++
		case '}', ']':
			depth--
			r.at++
		case ',', ':':
			r.at++
			continue
		default: // a number, true, false or null
			for r.at < len(r.text) && strings.IndexByte(",]} \t\r\n", r.text[r.at]) < 0 {
				r.at++
			}
		}
		if depth == 0 {
			return
		}
	}
}
