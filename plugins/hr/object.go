package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// document is one JSON answer of a vendor's. It keeps the first fault that reading its objects met, so that a row of
// reads needs one check at the end.
type document struct {
	lang   language
	vendor string
	err    error
}

// object is a JSON object with its place in the document. Its methods read members by name; of several names the first
// that is there counts, because vendors rename. Faults name the member and never quote its value, which may be
// personal.
type object struct {
	*document
	path    string
	members map[string]json.RawMessage
}

// parse reads the document as one object.
func (d *document) parse(data []byte) object {
	if !json.Valid(data) {
		d.malformed("", "an object")
		return object{document: d}
	}
	return d.object("", data)
}

// parseList reads the document as an array of objects, each called what.
func (d *document) parseList(data []byte, what string) []object {
	if !json.Valid(data) {
		d.malformed(what, "an array")
		return nil
	}
	return d.list(what, data)
}

// object reads a valid value as an object.
func (d *document) object(path string, data []byte) object {
	o := object{d, path, splitObject(data)}
	if o.members == nil {
		d.malformed(path, "an object")
	}
	return o
}

// list reads a valid value as an array of objects.
func (d *document) list(path string, data []byte) []object {
	items := splitArray(data)
	if items == nil {
		d.malformed(path, "an array")
		return nil
	}
	objects := make([]object, len(items))
	for i, item := range items {
		objects[i] = d.object(path+"["+strconv.Itoa(i)+"]", item)
	}
	return objects
}

// dataError is the error for a response, or a requested part of one, that lacks what is needed. Other responses may
// have it.
type dataError struct{ error }

func (e *dataError) Unwrap() error { return e.error }

func (d *document) fail(err error) {
	if d.err == nil {
		d.err = &dataError{err}
	}
}

func (d *document) malformed(path, want string) {
	if path == "" {
		path = d.lang.pick("応答全体", "the answer")
	}
	d.fail(d.lang.errorf("%sの応答が想定した形ではありません: %s は %s のはずです。プラグインの更新が必要かもしれません。",
		"the answer of %s is not of the expected shape: %s is not %s. The plugin may need an update.", d.vendor, path,
		want))
}

// missing reports a field that the answer lacks. It is an error: read as 0, a renamed field would look like a month
// without overtime.
func (d *document) missing(path string) {
	d.fail(d.lang.errorf("%sの応答に必要な項目 %s がありません。値を推測しないため中止しました。プラグインの更新が必要かもしれません。",
		"the answer of %s lacks the field %s, and its value is not guessed. The plugin may need an update.", d.vendor,
		path))
}

// place is the path of a member.
func (o object) place(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

// find returns the first member that is there and not null, else one that is null.
func (o object) find(names []string) (raw json.RawMessage, name string) {
	for _, candidate := range names {
		if value, ok := o.members[candidate]; ok {
			if raw, name = value, candidate; !isNull(value) {
				break
			}
		}
	}
	return raw, name
}

// has reports whether a member is there and not null.
func (o object) has(names ...string) bool {
	raw, _ := o.find(names)
	return raw != nil && !isNull(raw)
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(raw, []byte("null")) }

// require returns the member, or nil and a fault if none of the names is there or it is null.
func (o object) require(names []string) (raw json.RawMessage, name string) {
	raw, name = o.find(names)
	if raw == nil || isNull(raw) {
		o.missing(o.place(strings.Join(names, "|")))
		return nil, ""
	}
	return raw, name
}

// read decodes a member into a value of type T. The zero value and a fault come back if it is something else.
func read[T any](o object, raw json.RawMessage, name, want string) (value T) {
	if raw == nil {
		return value
	}
	switch into := any(&value).(type) { // the common cases, without reflection
	case *string:
		if raw[0] == '"' {
			*into = unquote(raw)
			return value
		}
	case *bool:
		if text := string(raw); text == "true" || text == "false" {
			*into = text == "true"
			return value
		}
	case *float64:
		if n, err := strconv.ParseFloat(string(raw), 64); err == nil && raw[0] != '"' {
			*into = n
			return value
		}
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		var zero T
		o.malformed(o.place(name), want)
		return zero
	}
	return value
}
