package results

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hako-run/hako/pdk/abi"
)

// TestHostileDocuments: a document that a guest made, to be large once it is decoded, takes no more memory than its own
// size a few times, whatever is read of it.
func TestHostileDocuments(t *testing.T) {
	const members, page = 1 << 17, 8 << 20
	list := "[" + strings.Repeat("0,", members) + "0]"
	object := "{" + strings.Repeat(`"a":0,`, members) + `"b":0}`
	lists := "[" + strings.Repeat("[],", members) + "[]]"
	const levels = 200
	neighbours := strings.Repeat(`,"b":0`, 5_000)
	deep := strings.Repeat(`{"a":`, levels) + "7" + strings.Repeat(neighbours+"}", levels)
	read := func(text, pointer string, q query) func() string {
		return func() string {
			q.Pointer = &pointer
			p, err := q.read(windowOf(text), mimeJSON, 4<<10)
			if err != nil {
				return err.Error()
			}
			return p.text + "\n" + p.note
		}
	}
	fit := func(text string) func() string {
		return func() string { return Fit(text, 4<<10, []byte(`{"properties":{"offset":{}}}`), nil) }
	}
	shorten := func(r abi.Response) func() string {
		return func() string {
			k := New(nil)
			k.Shorten(t.Context(), &r, "probe", Reader{Owner: "aki", Tool: Tool}, 4<<10)
			return r.Content[0].Text
		}
	}
	for name, test := range map[string]struct {
		do    func() string
		want  string
		bytes int // what may be allocated in all
	}{
		"an item of a list of many":        {read(list, "", query{Offset: members}), "items 131072 to 131072 of 131073", 3 * len(list)},
		"a page of a list of many":         {read(list, "", query{}), "the next page has", 3 * len(list)},
		"no item of a list of many":        {read(list, "", query{Offset: math.MaxInt}), "there are only 131073 items", 3 * len(list)},
		"a page of a list of empty lists":  {read(lists, "", query{Limit: math.MaxInt}), "the next page has", 3 * len(lists)},
		"the members of an object of many": {read(object, "", query{}), "/a: 0", 3 * len(object)},
		"a member of an object of many":    {read(object, "/b", query{}), "0\n", 3 * len(object)},
		"no member of an object of many":   {read(object, "/c", query{}), `there is nothing at "/c"`, 3 * len(object)},
		"an object in a list":              {read("["+object+"]", "", query{}), `item 0 has 786439 bytes`, 3 * len(object)},
		"the outline of a list in it":      {read(`{"x":`+list+`}`, "", query{}), "list of 131073 items", 3 * len(list)},
		"a part that is deep":              {read(deep, strings.Repeat("/a", levels), query{}), "7\n", 3 * len(deep)},
		"no part that is deep":             {read(deep, strings.Repeat("/a", levels)+"/a", query{}), "neither an object nor a list", 3 * len(deep)},
		"a list of many, cut":              {fit(list), "of 131073 items", 3 * len(list)},
		"an object of many, cut":           {fit(object), "(cut off", 3 * len(object)},
		"a list in an object of many, cut": {fit(object[:len(object)-1] + `,"x":` + list + "}"), "(cut off", 3 * (len(object) + len(list))},
		"a list that is deep, cut":         {fit(strings.Repeat(`{"a":`, 9_000) + list + strings.Repeat("}", 9_000)), "(cut off", 3 * len(list)},
		"a deep object, cut":               {fit(deep), "(cut off", 3 * len(deep)},
		"lists without end, cut":           {fit(strings.Repeat("[", 1<<20)), "(cut off", 3 << 20},
		"lists too deep, cut":              {fit(strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20)), "(cut off", 6 << 20},
		"text of many lists, kept":         {shorten(abi.Response{Content: []abi.Content{{Type: abi.Text, Text: lists}}}), "of its 131073 items", 4 * len(lists)},
		"an object of many, kept":          {shorten(abi.Response{StructuredContent: []byte(object)}), "for \"pointer\"", 4 * len(object)},
		"many texts, kept":                 {shorten(abi.Response{Content: bytesOf(members)}), "first", 16 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := test.do()
			runtime.ReadMemStats(&after)
			if !strings.Contains(got, test.want) {
				t.Errorf("got %.300q, want %q", got, test.want)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > uint64(test.bytes)+page {
				t.Errorf("%d bytes were allocated, more than %d and what a page takes", n, test.bytes)
			}
		})
	}
}

func bytesOf(n int) []abi.Content {
	list := make([]abi.Content, n)
	for i := range list {
		list[i] = abi.Content{Type: abi.Text, Text: "x"}
	}
	return list
}

// TestHostilePointers: a pointer that is no pointer, or that another reader would take for another part, finds nothing.
func TestHostilePointers(t *testing.T) {
	t.Parallel()
	const text = `{"a":[1,2],"":{"":3},"/":4,"~":5,"~1":6,"a\u0000b":7,"\u202e":8,"a":9}`
	for pointer, want := range map[string]string{
		"/a":                           "[1,2]", // the first of two: a reader that takes the last one sees the list above
		"/a/1":                         "2",
		"//":                           "3",
		"/~1":                          "4",
		"/~0":                          "5",
		"/~01":                         "6",
		"/a\x00b":                      "7",
		"a":                            "",
		"/a/2":                         "",
		"/a/-":                         "",
		"/a/-1":                        "",
		"/a/+1":                        "",
		"/a/01":                        "",
		"/a/1.0":                       "",
		"/a/1e0":                       "",
		"/a/ 1":                        "",
		"/a/99999999999999999999":      "",
		"/a/18446744073709551617":      "",
		"/A":                           "",
		"/a/1/":                        "",
		"/" + strings.Repeat("/", 999): "",
		"/\xff":                        "",
	} {
		t.Run(fmt.Sprintf("%.20q", pointer), func(t *testing.T) {
			t.Parallel()
			got, err := pointTo(jsontext.Value(text), pointer)
			if string(got) != want || (err == nil) != (want != "") {
				t.Errorf("got %s, %v, want %q", got, err, want)
			}
		})
	}
}
