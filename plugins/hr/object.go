package main

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// document is one JSON answer of a vendor's. It keeps the first fault that reading its objects met, so that a row of reads needs
// one check at the end.
type document struct {
	lang   language
	vendor string
	err    error
}

// object is a JSON object with its place in the document. Its methods read members by name; of several names the first that is
// there counts, because vendors rename. Faults name the member and never quote its value, which may be personal.
type object struct {
	*document
	path    string
	members map[string]json.RawMessage
}

// parse reads the document as one object.
func (d *document) parse(data []byte) object { return d.object("", data) }

// parseList reads the document as an array of objects, each called what.
func (d *document) parseList(data []byte, what string) []object { return d.list(what, data) }

func (d *document) object(path string, data []byte) object {
	o := object{document: d, path: path}
	if err := json.Unmarshal(data, &o.members); err != nil || o.members == nil {
		d.malformed(path, "an object")
	}
	return o
}

func (d *document) list(path string, data []byte) []object {
	var items []json.RawMessage
	if err := json.Unmarshal(data, &items); err != nil || items == nil {
		d.malformed(path, "an array")
		return nil
	}
	objects := make([]object, len(items))
	for i, item := range items {
		objects[i] = d.object(path+"["+strconv.Itoa(i)+"]", item)
	}
	return objects
}

func (d *document) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *document) malformed(path, want string) {
	if path == "" {
		path = d.lang.pick("応答全体", "the answer")
	}
	d.fail(d.lang.errorf("%sの応答が想定した形ではありません: %s は %s のはずです。プラグインの更新が必要かもしれません。",
		"the answer of %s is not of the expected shape: %s is not %s. The plugin may need an update.", d.vendor, path, want))
}

func (d *document) missing(path string) {
	d.fail(d.lang.errorf("%sの応答に必要な項目 %s がありません。値を推測しないため中止しました。プラグインの更新が必要かもしれません。",
		"the answer of %s lacks the field %s, and its value is not guessed. The plugin may need an update.", d.vendor, path))
}

// place is the path of a member.
func (o object) place(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

// find returns the first member that is there, also if it is null.
func (o object) find(names []string) (raw json.RawMessage, name string) {
	for _, name := range names {
		if raw, ok := o.members[name]; ok {
			return raw, name
		}
	}
	return nil, ""
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
	if err := json.Unmarshal(raw, &value); err != nil {
		var zero T
		o.malformed(o.place(name), want)
		return zero
	}
	return value
}

// text reads a string that must be there; it may be empty.
func (o object) text(names ...string) string {
	raw, name := o.require(names)
	return read[string](o, raw, name, "a string")
}

// optionalText reads a string, nil if it is missing, null or empty.
func (o object) optionalText(names ...string) *string {
	if !o.has(names...) {
		return nil
	}
	if text := strings.TrimSpace(o.text(names...)); text != "" {
		return &text
	}
	return nil
}

// id reads an integer of any length as a decimal string.
func (o object) id(names ...string) string {
	raw, name := o.require(names)
	text := string(raw)
	if raw != nil && !digits(text) {
		o.malformed(o.place(name), "an integer")
		return ""
	}
	return text
}

// digits reports whether s is a decimal number without sign, as ids are.
func digits(s string) bool {
	return s != "" && len(s) <= 18 && strings.Trim(s, "0123456789") == ""
}

// number reads a number that must be there.
func (o object) number(names ...string) float64 {
	raw, name := o.require(names)
	return read[float64](o, raw, name, "a number")
}

// optionalNumber reads a number, nil if it is missing or null.
func (o object) optionalNumber(names ...string) *float64 {
	if !o.has(names...) {
		return nil
	}
	n := o.number(names...)
	return &n
}

// maxMinutes is more than any month has.
const maxMinutes = 100_000

// minutes reads a number of minutes that must be there.
func (o object) minutes(names ...string) int {
	raw, name := o.require(names)
	n := read[float64](o, raw, name, "a number of minutes")
	if n != math.Trunc(n) || n < 0 || n > maxMinutes {
		o.malformed(o.place(name), "a number of minutes")
		return 0
	}
	return int(n)
}

// optionalMinutes reads a number of minutes, nil if it is missing or null.
func (o object) optionalMinutes(names ...string) *int {
	if !o.has(names...) {
		return nil
	}
	n := o.minutes(names...)
	return &n
}

// flag reads a boolean that must be there.
func (o object) flag(names ...string) bool {
	raw, name := o.require(names)
	return read[bool](o, raw, name, "true or false")
}

// date reads a day that must be there.
func (o object) date(names ...string) date {
	raw, name := o.require(names)
	if raw == nil {
		return ""
	}
	d, err := parseDate(read[string](o, raw, name, "a date"))
	if err != nil {
		o.malformed(o.place(name), "a date (YYYY-MM-DD)")
	}
	return d
}

// optionalDate reads a day, nil if it is missing, null or empty.
func (o object) optionalDate(names ...string) *date {
	raw, _ := o.find(names)
	if !o.has(names...) || string(raw) == `""` {
		return nil
	}
	d := o.date(names...)
	return &d
}

// nullableDate reads a day that may be null but not missing.
func (o object) nullableDate(name string) *date {
	if raw, _ := o.find([]string{name}); raw == nil {
		o.missing(o.place(name))
		return nil
	}
	return o.optionalDate(name)
}

// optionalTime reads a time in RFC 3339, nil if it is missing or null.
func (o object) optionalTime(name string) *time.Time {
	if !o.has(name) {
		return nil
	}
	raw, _ := o.find([]string{name})
	t, err := time.Parse(time.RFC3339, read[string](o, raw, name, "a time"))
	if err != nil {
		o.malformed(o.place(name), "a time (RFC 3339)")
		return nil
	}
	t = t.In(jst)
	return &t
}

// child reads an object that must be there.
func (o object) child(name string) object {
	raw, _ := o.require([]string{name})
	if raw == nil {
		return object{document: o.document, path: o.place(name)}
	}
	return o.object(o.place(name), raw)
}

// children reads an array of objects that must be there.
func (o object) children(names ...string) []object {
	raw, name := o.require(names)
	if raw == nil {
		return nil
	}
	return o.list(o.place(name), raw)
}

// optionalChildren reads an array of objects, none if it is missing or null. Items that are null are passed over.
func (o object) optionalChildren(name string) []object {
	if !o.has(name) {
		return nil
	}
	raw, _ := o.find([]string{name})
	var list []object
	for i, item := range read[[]json.RawMessage](o, raw, name, "an array") {
		if !isNull(item) {
			list = append(list, o.object(o.place(name)+"["+strconv.Itoa(i)+"]", item))
		}
	}
	return list
}

// optionalName reads a member that is a string, or an object with a name.
func (o object) optionalName(name string) *string {
	raw, _ := o.find([]string{name})
	if len(raw) > 0 && raw[0] == '{' {
		return o.child(name).optionalText("name")
	}
	return o.optionalText(name)
}

// code reads a member that is a number or a string, as a string.
func (o object) code(name string) string {
	raw, _ := o.require([]string{name})
	return strings.Trim(string(raw), `"`)
}

// at resolves a path of two names, "outer.inner", to the object that has the last one. Without the outer object, that has no members.
func (o object) at(path string) (holder object, name string) {
	outer, inner, nested := strings.Cut(path, ".")
	switch {
	case !nested:
		return o, path
	case o.has(outer):
		return o.child(outer), inner
	}
	return object{document: o.document, path: o.place(outer)}, inner
}

// sum adds up minutes at paths that must all be there.
func (o object) sum(paths []string) (minutes int) {
	for _, path := range paths {
		holder, name := o.at(path)
		minutes += holder.minutes(name)
	}
	return minutes
}

// optionalSum adds up minutes at those of the paths that are there.
func (o object) optionalSum(paths []string) (minutes int) {
	for _, path := range paths {
		if holder, name := o.at(path); holder.has(name) {
			minutes += holder.minutes(name)
		}
	}
	return minutes
}
