package results_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/results"
	"github.com/hako-run/hako/pdk/abi"
)

const limit = 4 << 10

func text(body string) *abi.Response {
	return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: body}}}
}

// rows returns a JSON object with a list of n items, and what follows the list.
func rows(n int) string {
	var b strings.Builder
	b.WriteString(`{"total":` + fmt.Sprint(n) + `,"rows":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"山田 太郎 %d"}`, i, i)
	}
	b.WriteString(`],"a/b":{"~":"` + strings.Repeat("長い文\n", 1000) + `"}}`)
	return strings.ReplaceAll(b.String(), "\n", `\n`)
}

// list returns a JSON object with a list of n items alone.
func list(n int) string {
	whole, _, _ := strings.Cut(rows(n), `,"a/b"`)
	return whole + "}"
}

func reader(owner string) results.Reader { return results.Reader{Owner: owner, Tool: results.Tool} }

// everyStorage runs a test with results in memory and in a shared database.
func everyStorage(t *testing.T, test func(t *testing.T, open func(*results.Options) *results.Keeper)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, results.New)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		s := openStore(t, postgrestest.Start(t))
		test(t, func(o *results.Options) *results.Keeper { return open(t, s, o) })
	})
}

// keep shortens a response for an owner and returns the ID in its link.
func keep(t testing.TB, k *results.Keeper, owner string, r *abi.Response) string {
	t.Helper()
	if shortened, _ := k.Shorten(t.Context(), r, "list_rows", reader(owner), limit); !shortened {
		t.Fatal("the response is small enough")
	}
	for _, block := range r.Content {
		if block.Type == abi.ResourceLink {
			return strings.TrimPrefix(block.URI, "hako-result:///")
		}
	}
	t.Fatalf("no link in %+v", r.Content)
	return ""
}

// read calls read_result. note is the second block.
func read(k *results.Keeper, owner string, maxResult int, arguments string) (body, note string, err error) {
	r, err := k.Call(context.Background(), &catalog.Invocation{Owner: owner, MaxResult: maxResult,
		Request: &abi.Request{Method: abi.CallTool, Name: results.Tool, Arguments: json.RawMessage(arguments)}})
	if err != nil {
		return "", "", err
	}
	if len(r.Content) > 1 {
		note = r.Content[1].Text
	}
	return r.Content[0].Text, note, nil
}

// TestShorten checks what takes the place of large results, and that the whole can be read.
func TestShorten(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("0123456789\n", 1000)
	image := abi.Content{Type: abi.Image, MIMEType: "image/png", Data: make([]byte, 2*limit)}
	for _, test := range []struct {
		name       string
		response   abi.Response
		kept       []string // the documents, in order
		mimeType   string
		note       string
		structured bool
	}{
		{"text", abi.Response{Content: []abi.Content{{Type: abi.Text, Text: lines}}}, []string{lines}, "text/plain",
			"These are its first 1022 bytes.", false},
		{"JSON as text", abi.Response{Content: []abi.Content{{Type: abi.Text, Text: list(300)}}}, []string{list(300)},
			"application/json", "has only the first", false},
		{"a large text beside a list", abi.Response{Content: []abi.Content{{Type: abi.Text, Text: rows(300)}}},
			[]string{rows(300)}, "application/json", "not the result itself: members 0 to 2 of 3", false},
		{"structured content and its text", abi.Response{StructuredContent: json.RawMessage(list(300)),
			Content: []abi.Content{{Type: abi.Text, Text: list(300)}}}, []string{list(300)}, "application/json", "", true},
		{"structured content alone", abi.Response{StructuredContent: json.RawMessage(list(300))}, []string{list(300)},
			"application/json", "", true},
		{"structured content and another text", abi.Response{StructuredContent: json.RawMessage(rows(300)),
			Content: []abi.Content{{Type: abi.Text, Text: lines}, image}}, []string{lines, rows(300)}, "", "", true},
		{"texts and an image", abi.Response{Content: []abi.Content{image, {Type: abi.Text, Text: "one"},
			{Type: abi.Text, Text: lines}}}, []string{"one\n" + lines}, "text/plain", "", false},
		{"an embedded file", abi.Response{Content: []abi.Content{{Type: abi.Embedded,
			Resource: &abi.ResourceContents{URI: "file:///a.csv", MIMEType: "text/csv", Text: lines}}}}, []string{lines},
			"text/csv", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			k := results.New(nil)
			r := test.response
			images := strings.Count(fmt.Sprintf("%+v", r.Content), "image/png")
			shortened, structured := k.Shorten(t.Context(), &r, "list_rows", reader("aki"), limit)
			if !shortened || structured != test.structured || r.StructuredContent != nil {
				t.Fatalf("shortened %v, structured %v, left %d bytes", shortened, structured, len(r.StructuredContent))
			}
			size, found := 0, 0
			for _, block := range r.Content {
				size += len(block.Text)
				if block.Type == abi.Image {
					images--
				}
				if block.Type != abi.ResourceLink {
					continue
				}
				whole := test.kept[found]
				if *block.Size != int64(len(whole)) || test.mimeType != "" && block.MIMEType != test.mimeType {
					t.Errorf("link %+v to %d bytes", block, len(whole))
				}
				got, _, err := read(k, "aki", 0, fmt.Sprintf(`{"id":%q}`, block.URI))
				if err != nil || got != whole {
					t.Errorf("read %d bytes of %d, %v", len(got), len(whole), err)
				}
				found++
			}
			if found != len(test.kept) || images != 0 || size > limit || !strings.Contains(r.Content[0].Text, test.note) {
				t.Errorf("%d links, %d images too few, %d bytes: %+v", found, images, size, r.Content)
			}
			_, start, _ := strings.Cut(r.Content[0].Text, "\n")
			if test.kept[0] == list(300) && !json.Valid([]byte(start)) {
				t.Errorf("the beginning is cut JSON: %s", start)
			}
		})
	}
	small := text("small")
	if shortened, _ := results.New(nil).Shorten(t.Context(), small, "x", reader("aki"), limit); shortened || small.Content[0].Text != "small" {
		t.Errorf("a small result is %+v", small)
	}
}

// TestPages reads whole results page by page as the notes say, and compares what comes together.
func TestPages(t *testing.T) {
	t.Parallel()
	everyStorage(t, func(t *testing.T, open func(*results.Options) *results.Keeper) {
		k := open(nil)
		whole := strings.Repeat("行 0123456789\n", 500) + strings.Repeat("長", 5000) + "\nlast"
		id := keep(t, k, "aki", text(whole))
		inJSON := keep(t, k, "aki", text(rows(300)))

		next := func(note string) (offset int, more bool) {
			_, after, more := strings.Cut(note, `"offset": `)
			_, _ = fmt.Sscanf(after, "%d", &offset)
			return offset, more
		}
		var b strings.Builder
		unit := ""
		for offset, more := 0, true; more; {
			page, note, err := read(k, "aki", limit, fmt.Sprintf(`{"id":%q,"offset":%d%s}`, id, offset, unit))
			if err != nil || len(page)+len(note) > limit || page == "" {
				t.Fatalf("page of %d bytes at %d: %s, %v", len(page), offset, note, err)
			}
			b.WriteString(page)
			if strings.Contains(note, `"unit": "characters"`) {
				unit = `,"unit":"characters"`
			}
			offset, more = next(note)
		}
		if b.String() != whole {
			t.Errorf("the pages have %d bytes, the text %d", b.Len(), len(whole))
		}

		var items []json.RawMessage
		for offset, more := 0, true; more; {
			page, note, err := read(k, "aki", limit, fmt.Sprintf(`{"id":%q,"pointer":"/rows","offset":%d}`, inJSON, offset))
			var list []json.RawMessage
			if err != nil || json.Unmarshal([]byte(page), &list) != nil || len(list) == 0 {
				t.Fatalf("page %q at %d: %s, %v", page, offset, note, err)
			}
			items = append(items, list...)
			offset, more = next(note)
		}
		if len(items) != 300 || string(items[299]) != `{"id":299,"name":"山田 太郎 299"}` {
			t.Errorf("%d items", len(items))
		}
	})
}

func TestReadResult(t *testing.T) {
	t.Parallel()
	everyStorage(t, func(t *testing.T, open func(*results.Options) *results.Keeper) {
		k := open(nil)
		plain := keep(t, k, "aki", text(strings.Repeat("line\n", 1000)))
		data := keep(t, k, "aki", text(rows(300)))
		large := keep(t, k, "aki", text(`[1,"`+strings.Repeat("x", 2*limit)+`"]`))
		for _, test := range []struct{ arguments, want, note, fails string }{
			{`{"id":"PLAIN","offset":998}`, "line\nline\n", "", ""},
			{`{"id":"PLAIN","offset":10,"limit":2}`, "line\nline\n", `lines 10 to 11 of 1000: the next page has "offset": 12`, ""},
			{`{"id":"PLAIN","offset":5000}`, "", "there are only 1000 lines", ""},
			{`{"id":"PLAIN","offset":3,"limit":4,"unit":"characters"}`, "e\nli", "characters 3 to 6 of 5000", ""},
			{`{"id":"PLAIN","unit":"items"}`, "", "", "not a list"},
			{`{"id":"PLAIN","pointer":"/a"}`, "", "", "a pointer is for JSON"},
			{`{"id":"JSON"}`, "/total: 300\n/rows: list of 300 items, ", "an object of", ""},
			{`{"id":"JSON","pointer":"/total"}`, "300", "", ""},
			{`{"id":"JSON","pointer":"/rows/17"}`, `{"id":17,"name":"山田 太郎 17"}`, "", ""},
			{`{"id":"JSON","pointer":"/rows","offset":298}`, `[{"id":298,"name":"山田 太郎 298"},{"id":299,`, "", ""},
			{`{"id":"JSON","pointer":"/a~1b/~0","offset":2,"limit":1}`, "長い文\n", "lines 2 to 2 of 1000", ""},
			{`{"id":"JSON","pointer":"/rows/300"}`, "", "", "/rows is a list of 300 items"},
			{`{"id":"JSON","pointer":"/rows/-1"}`, "", "", "/rows is a list of 300 items"},
			{`{"id":"JSON","pointer":"/none"}`, "", "", "the result is an object with total, rows, a/b"},
			{`{"id":"JSON","pointer":"/total/x"}`, "", "", "/total is neither an object nor a list"},
			{`{"id":"JSON","pointer":"rows"}`, "", "", "begins with /"},
			{`{"id":"JSON","unit":"items"}`, "", "", "not a list"},
			{`{"id":"LARGE","offset":1}`, "[]", `item 1 has 8194 bytes, which is more than a page: read it with "pointer": "/1"`, ""},
			{`{"id":"none"}`, "", "", `you have no stored result "none"`},
		} {
			arguments := strings.NewReplacer("PLAIN", plain, "JSON", data, "LARGE", large).Replace(test.arguments)
			got, note, err := read(k, "aki", limit, arguments)
			switch {
			case test.fails != "":
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("%s: %v, want %s", test.arguments, err, test.fails)
				}
			case err != nil || !strings.HasPrefix(got, test.want) || test.want == "" && got != "" || !strings.Contains(note, test.note):
				t.Errorf("%s: %q, %q, %v", test.arguments, got, note, err)
			}
		}
		// A program gets values, without notes.
		if got, note, err := read(k, "aki", 0, fmt.Sprintf(`{"id":%q,"pointer":"/rows","limit":1}`, data)); err != nil || note != "" ||
			got != `[{"id":0,"name":"山田 太郎 0"}]` {
			t.Errorf("%q, %q, %v", got, note, err)
		}
	})
}

// TestOwners: nobody reads, or learns of, what is kept for others.
func TestOwners(t *testing.T) {
	t.Parallel()
	everyStorage(t, func(t *testing.T, open func(*results.Options) *results.Keeper) {
		k := open(nil)
		id := keep(t, k, "aki", text(strings.Repeat("secret ", 1000)))
		_, _, absent := read(k, "ben", limit, `{"id":"`+strings.Repeat("a", len(id))+`"}`)
		_, _, err := read(k, "ben", limit, `{"id":"`+id+`"}`)
		if err == nil || absent == nil || strings.ReplaceAll(err.Error(), id, "") !=
			strings.ReplaceAll(absent.Error(), strings.Repeat("a", len(id)), "") {
			t.Errorf("another caller is told %v, and of an ID that is none %v", err, absent)
		}
		_, err = k.Call(t.Context(), &catalog.Invocation{Owner: "ben", Request: &abi.Request{Method: abi.ReadResource,
			URI: "hako-result:///" + id, Variables: map[string]string{"id": id}}})
		if err == nil {
			t.Error("another caller reads the resource")
		}
	})
}

// TestRoom: newer results replace the caller's own older ones, and then those of the caller with most.
func TestRoom(t *testing.T) {
	t.Parallel()
	everyStorage(t, func(t *testing.T, open func(*results.Options) *results.Keeper) {
		const each = 10 << 10
		k := open(&results.Options{PerCaller: 3 * 11 << 10, Total: 5 * 11 << 10})
		body := strings.Repeat("x", each)
		var ids []string
		for range 4 {
			ids = append(ids, keep(t, k, "greedy", text(body)))
		}
		readable := func(owner, id string) bool {
			_, _, err := read(k, owner, limit, `{"id":"`+id+`"}`)
			return err == nil
		}
		if readable("greedy", ids[0]) || !readable("greedy", ids[1]) || !readable("greedy", ids[3]) {
			t.Error("the caller's oldest result should have given way")
		}
		modest := keep(t, k, "modest", text(body))
		keep(t, k, "third", text(body))
		if keep(t, k, "fourth", text(body)); !readable("modest", modest) || readable("greedy", ids[1]) {
			t.Error("the caller with most should have given way")
		}
		if count, bytes, err := k.Size(t.Context()); err != nil || count != 5 || bytes > 5*11<<10 {
			t.Errorf("%d results of %d bytes are kept", count, bytes)
		}
		r := text(strings.Repeat("x", 40<<10))
		if shortened, _ := k.Shorten(t.Context(), r, "t", reader("greedy"), limit); !shortened || len(r.Content) != 1 || len(r.Content[0].Text) > limit ||
			!strings.Contains(r.Content[0].Text, "results.perCaller") {
			t.Errorf("a result that is too large to be kept: %.300q", r.Content[0].Text)
		}
	})
}

func TestLifetime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := results.New(&results.Options{Lifetime: time.Minute})
		id := keep(t, k, "aki", text(strings.Repeat("x", 2*limit)))
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if _, _, err := read(k, "aki", limit, `{"id":"`+id+`"}`); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if _, _, err := read(k, "aki", limit, `{"id":"`+id+`"}`); err == nil || !strings.Contains(err.Error(), "for 1m0s") {
			t.Errorf("after its lifetime: %v", err)
		}
		if count, bytes, err := k.Size(t.Context()); err != nil || count != 0 || bytes != 0 {
			t.Errorf("%d results of %d bytes are left", count, bytes)
		}
	})
}

// TestHammer is for the race detector: many callers keep and read at once.
func TestHammer(t *testing.T) {
	t.Parallel()
	k := results.New(&results.Options{PerCaller: 64 << 10, Total: 128 << 10, Lifetime: time.Microsecond})
	var group sync.WaitGroup
	for i := range 8 {
		owner := fmt.Sprint("caller ", i%4)
		group.Go(func() {
			for range 200 {
				id := keep(t, k, owner, text(strings.Repeat(owner, 1000)))
				if got, _, err := read(k, owner, limit, `{"id":"`+id+`"}`); err == nil && !strings.HasPrefix(got, owner) {
					t.Errorf("%s reads %.40s", owner, got)
				}
			}
		})
	}
	group.Wait()
	if _, bytes, err := k.Size(t.Context()); err != nil || bytes > 128<<10 || bytes < 0 {
		t.Errorf("%d bytes are kept", bytes)
	}
}

func FuzzReadResult(f *testing.F) {
	f.Add(rows(200), `{"pointer":"/rows","offset":3}`)
	f.Add(strings.Repeat("a\n", 5000), `{"unit":"characters","offset":7,"limit":9}`)
	f.Add("["+strings.Repeat(" ", 5000)+"]", `{"pointer":"/a~1b"}`)
	f.Fuzz(func(t *testing.T, body, arguments string) {
		body = strings.ToValidUTF8(body, "�") // as it is kept
		var given map[string]any
		if json.Unmarshal([]byte(arguments), &given) != nil || given == nil || len(body) <= limit {
			return
		}
		for _, name := range []string{"offset", "limit"} {
			if n, ok := given[name].(float64); ok && n < 0 {
				return
			}
		}
		k := results.New(nil)
		given["id"] = keep(t, k, "aki", text(body))
		encoded, err := json.Marshal(given)
		if err != nil {
			t.Fatal(err)
		}
		if page, note, err := read(k, "aki", limit, string(encoded)); err == nil && len(page)+len(note) > limit+2000 {
			t.Errorf("a page of %d bytes, %d of note", len(page), len(note))
		}
	})
}

// BenchmarkKeeping shortens and keeps results of the sizes of a long list, a large file, and the largest result of a
// plugin by default.
func BenchmarkKeeping(b *testing.B) {
	for _, size := range []int{128 << 10, 1 << 20, 4 << 20} {
		line := "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n"
		for kind, body := range map[string]string{
			"text": strings.Repeat(line, size/len(line)),
			"JSON": `{"rows":[` + strings.Repeat(`{"name":"`+line[:60]+`"},`, size/72) + `{}]}`,
		} {
			b.Run(fmt.Sprintf("%s/%dKiB", kind, size>>10), func(b *testing.B) {
				k := results.New(nil)
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					if shortened, _ := k.Shorten(b.Context(), text(body), "file_read", reader("aki"), 100<<10); !shortened {
						b.Fatal("not kept")
					}
				}
			})
		}
	}
}
