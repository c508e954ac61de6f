package strictyaml

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestValues(t *testing.T) {
	t.Parallel()
	var got struct {
		text  string
		flag  bool
		maybe *bool
		n     int
		d     time.Duration
		size  int64
		list  []string
		json  json.RawMessage
		order []string
	}
	err := Read([]byte(`
text: 2026-01-02
flag: true
maybe: false
n: 7
d: 1m30s
size: 1.5KiB
list: [a, "1"]
json: {b: [1.0, -2e3, null, true, 2026-01-02, "<&>"], "a": {}, c: []}
map: {z: 1, a: 2, "b c": 3}
`), 1000, func(v Value) {
		v.Object(Fields{
			"text": String(&got.text), "flag": Bool(&got.flag), "maybe": BoolPointer(&got.maybe), "n": Count(&got.n),
			"d":    Duration(&got.d),
			"size": Size(&got.size), "list": Strings(&got.list), "json": func(v Value) { got.json = v.JSON() },
			"map": func(v Value) { v.Map(func(key string, v Value) { got.order = append(got.order, key+"="+v.path) }) },
		})
	}, nil)
	if err == nil || err.Error() != `7:7: size: must be a size above zero with its unit, B, KiB, MiB, GiB or TiB, such as "64MiB"` {
		t.Errorf("got %v", err)
	}
	if got.text != "2026-01-02" || !got.flag || *got.maybe || got.n != 7 || got.d != 90*time.Second || got.size != 0 ||
		!slices.Equal(got.list, []string{"a", "1"}) {
		t.Errorf("got %+v", got)
	}
	if want := `{"b":[1.0,-2e3,null,true,"2026-01-02","<&>"],"a":{},"c":[]}`; string(got.json) != want {
		t.Errorf("got %s, want %s", got.json, want)
	}
	if want := []string{"z=map.z", "a=map.a", `b c=map["b c"]`}; !slices.Equal(got.order, want) {
		t.Errorf("got %q, want %q", got.order, want)
	}
}

func TestCheckProblems(t *testing.T) {
	t.Parallel()
	read := func(v Value) {
		var ignored string
		v.Object(Fields{"name": String(&ignored), "kind": String(&ignored), "list": Strings(new([]string))})
	}
	check := func() error {
		var e Error
		e.Add("name", "follows from the wrong type")
		e.Add("kind", "follows from the misspelt key")
		e.Add("list[1].deep", "lies in item 1")
		e.Add("list[9]", "lies in no item")
		e.Add("", "is about everything")
		return e.Err()
	}
	err := Read([]byte("name: 1\nkibd: x\nlist: [a,\n b]\n"), 1000, read, check)
	want := `1:1: is about everything
1:7: name: must be text, not a number: for a text write "1"
2:1: unknown key "kibd": did you mean "kind"?
3:7: list[9]: lies in no item
4:2: list[1].deep: lies in item 1`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	failure := errors.New("disk on fire")
	if err := Read([]byte("name: a"), 1000, read, func() error { return failure }); !errors.Is(err, failure) {
		t.Errorf("another error: got %v", err)
	}
}

func TestErrorIsBounded(t *testing.T) {
	t.Parallel()
	var e Error
	if e.Err() != nil {
		t.Error("an empty list is an error")
	}
	for i := range 50 {
		e.Add(fmt.Sprintf("item%d", i), "is wrong")
	}
	if text := e.Error(); !strings.HasSuffix(text, "item19: is wrong\nand 30 more") {
		t.Errorf("got %s", text)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"description", "inputSchema", "name", "url", "read-only"}
	for name, want := range map[string]string{
		"desciption": "description", "Description": "description", "input_schema": "inputSchema", "nmae": "name",
		"uri": "url", "names": "name",
		"readonly": "read-only", "zzz": "", "": "", "n": "", strings.Repeat("x", 1000): "", "permissions": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	if got, want := Unknown("key", "\x1b[2J"+strings.Repeat("x", 100), nil), `unknown key "\x1b[2J`+strings.Repeat("x", 56)+`…": none is allowed here`; got.Error() != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("known%02d", i))
	}
	if got := Unknown("key", "zzz", many); !strings.HasSuffix(got.Error(), "known23, ...") {
		t.Errorf("got %s", got)
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"1B": 1, "1KiB": 1024, "64MiB": 64 << 20, "3GiB": 3 << 30, "8388607TiB": 8388607 << 40, "0B": 0,
		"8388608TiB": 0, "1": 0, "-1B": 0, "1kb": 0, "1.5GiB": 0,
	} {
		got, ok := parseSize(text)
		if got != want || ok != (want != 0) {
			t.Errorf("%s: got %d, %v", text, got, ok)
		}
		if ok && FormatSize(got) != text {
			t.Errorf("%s: written as %s", text, FormatSize(got))
		}
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	m := Mapping{
		{"text", "plain"},
		{"number", "1.0"},
		{"merge", "<<"},
		{"lines", "a\nb: c\n"},
		{"empty", ""},
		{"flag", true},
		{"off", false},
		{"list", []string{"**/.git/**", "no", "a, b"}},
		{"none", []string{}},
		{"inner", Mapping{{"200", "x"}, {"gone", ""}}},
		{"items", []Mapping{{{"a", "1"}}, {{"b", "2"}}}},
	}
	data, err := Write(m, "# A comment.\n")
	if err != nil {
		t.Fatal(err)
	}
	want := `# A comment.
text: plain
number: "1.0"
merge: "<<"
lines: |
  a
  b: c
flag: true
list: ['**/.git/**', "no", 'a, b']
inner:
  "200": x
items:
  - a: "1"
  - b: "2"
`
	if string(data) != want {
		t.Errorf("got\n%s\nwant\n%s", data, want)
	}
	if _, err := Write(Mapping{{"a", Mapping{{"b", 0.5}}}}, ""); err == nil ||
		err.Error() != "a: b: a float64 cannot be written" {
		t.Errorf("a fraction: got %v", err)
	}
}

// FuzzWrite checks that what Write writes is read back the same.
func FuzzWrite(f *testing.F) {
	f.Add("key", "value", "item")
	f.Add("<<", "2026-01-02", "~")
	f.Add("a: b", "- x\n\ty", "#")
	f.Fuzz(func(t *testing.T, key, value, item string) {
		data, err := Write(Mapping{{key, value}, {key + "s", []string{item, value}}}, "")
		if err != nil {
			return // not UTF-8
		}
		got, want := map[string]any{}, map[string]any{key + "s": []any{item, value}}
		if value != "" {
			want[key] = value
		}
		err = Read(data, 1<<20, func(v Value) {
			if err := json.Unmarshal(v.JSON(), &got); err != nil {
				t.Fatal(err)
			}
		}, nil)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q was read as %q: %v", data, got, err)
		}
	})
}
