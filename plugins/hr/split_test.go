package main

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzSplit checks that valid JSON is split as package encoding/json does it, at every level.
func FuzzSplit(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, ` { "a" : 1 , "b":[ 1,{"c":null} ] ,"a": 2} `, `{"\"":"\\","x\\":"a\\\"b"}`,
		"[\"\xff\", -1.5e3 ,true]",
		`"text"`, `7`, `{"a":{"b":{"c":[[],[{}]]}}}`, `{"日本":"語 \u3042","":""}`, `["}","]",",",":"]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if json.Valid(data) {
			compareSplit(t, data)
		}
	})
}

func compareSplit(t *testing.T, data []byte) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(data, &members)
	if got := splitObject(data); !reflect.DeepEqual(got, members) && string(data) != "null" {
		t.Fatalf("the members of %q are %q, want %q", data, got, members)
	}
	var items []json.RawMessage
	_ = json.Unmarshal(data, &items)
	if got := splitArray(data); !reflect.DeepEqual(got, items) {
		t.Fatalf("the items of %q are %q, want %q", data, got, items)
	}
	for _, member := range members {
		compareSplit(t, member)
	}
	for _, item := range items {
		compareSplit(t, item)
	}
	var text string
	if json.Unmarshal(data, &text) == nil && data[0] == '"' && data[len(data)-1] == '"' && unquote(data) != text {
		t.Fatalf("%q is %q, want %q", data, unquote(data), text)
	}
}
