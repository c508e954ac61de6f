package main

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// text reads a string that must be there; it may be empty.
func (o object) text(names ...string) string {
	raw, name := o.require(names)
	return read[string](o, raw, name, "a string")
}

// key reads a string that must be there and not be empty.
func (o object) key(name string) string {
	text := o.text(name)
	if text == "" {
		o.missing(o.place(name))
	}
	return text
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

// digits reports whether s is an id in the one form that it has: ASCII digits without sign and leading zeros. A vendor
// may take other forms for the same employee, past a policy that compares ids.
func digits(s string) bool {
	return decimal(s) && len(s) <= 18 && (s[0] != '0' || s == "0")
}

// decimal reports whether s consists of ASCII digits.
func decimal(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

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

// at resolves a path of two names, "outer.inner", to the object that has the last one. Without the outer object, that
// has no members.
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
