package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/pdk/abi"
)

type object = map[string]any

const allEscapes = `{"text" : "\u0041\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00" , "other":[{"a":{}},-1.5E+3,true,null]}`

var tests = []struct {
	name string
	run  func(*suite) error
}{
	{"an empty text", func(s *suite) error { return s.wantText("echo", object{"text": ""}, "") }},
	{"a text with control characters and NUL", func(s *suite) error {
		const text = "a\x00b\x01\x1f\x7f\"\\/<>&\u2028é海😀"
		return s.wantText("echo", object{"text": text}, text)
	}},
	{"every escape sequence, white space, unknown keys", func(s *suite) error {
		return s.wantText("echo", json.RawMessage(allEscapes), "A\"\\/\b\f\n\r\té😀")
	}},
	{"a text of 1 MiB", func(s *suite) error {
		text := strings.Repeat("0123456789abcde海", 1<<20/18)
		return s.wantText("echo", object{"text": text}, text)
	}},
	{"deeply nested arguments", func(s *suite) error {
		nested := strings.Repeat("[", 100) + strings.Repeat("]", 100)
		return s.wantText("echo", json.RawMessage(`{"text":"deep","other":`+nested+`}`), "deep")
	}},
	{"bytes that are not UTF-8", func(s *suite) error {
		got, err := s.text("bytes", object{"bytes": []int{'h', 0xff, 'i', 0xc3}})
		if err == nil && (!utf8.ValidString(got) || !strings.HasPrefix(got, "h") || !strings.Contains(got, "i")) {
			err = fmt.Errorf("got %s, want valid UTF-8 with h and i", short(got))
		}
		return err
	}},
	{"structured content", structured},
	{"content blocks", blocks},
	{"a failure of a tool", func(s *suite) error {
		return s.wantFailure("fail", object{"message": "try \"Paris\""}, `try "Paris"`)
	}},
	{"a panic, and a call after it", func(s *suite) error {
		return errors.Join(s.wantFailure("panic", object{"message": "on purpose"}, "on purpose"),
			s.wantText("echo", object{"text": "still here"}, "still here"))
	}},
	{"no state of earlier calls", func(s *suite) error {
		return errors.Join(s.wantText("count", object{}, "1"), s.wantText("count", object{}, "1"))
	}},
	{"new random numbers in each call", func(s *suite) error {
		first, err1 := s.text("random", object{})
		second, err2 := s.text("random", object{})
		if first == second {
			return errors.Join(err1, err2, fmt.Errorf("two calls drew %s: seed the generator in each call", first))
		}
		return errors.Join(err1, err2)
	}},
	{"configuration", func(s *suite) error { return s.wantText("config", object{}, "Moin") }},
	{"the caller's language", func(s *suite) error { return s.wantText("locale", object{}, "ja") }},
	{"progress and updates", progressAndUpdates},
	{"the log", func(s *suite) error {
		err := s.wantText("log", object{"message": "a record"}, "logged")
		if !s.log.has("a record") {
			return errors.Join(err, errors.New("the record is not in the log"))
		}
		return err
	}},
	{"resources", resources},
	{"prompts and completion", prompts},
	{"what the plugin does not have", notFound},
	{"handlers", handlers},
	{"an HTTP request", func(s *suite) error {
		err := s.wantStructured("http", object{"method": "POST", "url": s.server + "open/a", "body": "海"},
			`{"body":"POST /open/a 海","status":200,"type":"text/plain"}`)
		return errors.Join(err,
			s.wantStructured("http", object{"method": "GET", "url": s.server + "open/missing", "body": ""},
				`{"body":"GET /open/missing ","status":404,"type":"text/plain"}`))
	}},
	{"an HTTP request that is not granted", func(s *suite) error {
		return s.wantFailure("http", object{"method": "GET", "url": s.server + "closed", "body": ""}, "not-granted: ")
	}},
	{"HTTP requests at once", func(s *suite) error {
		urls := []string{s.server + "open/1", s.server + "open/2", s.server + "open/3"}
		return s.wantText("parallel", object{"urls": urls}, "GET /open/1 |GET /open/2 |GET /open/3 ")
	}},
	{"SQL", sql},
	{"SQL values", sqlValues},
	{"SQL transactions", sqlTransactions},
}

func (s *suite) wantStructured(tool string, arguments any, want string) error {
	response, err := s.call(tool, arguments)
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(response.StructuredContent, &value); err != nil {
		return fmt.Errorf("structured content of %s: %w; content %+v", tool, err, response.Content)
	}
	sorted, err := json.Marshal(value)
	if string(sorted) != want {
		return fmt.Errorf("got %s, want %s", sorted, want)
	}
	return err
}

func structured(s *suite) error {
	return errors.Join(s.wantStructured("add", object{"a": 2, "b": 40}, `{"sum":42}`),
		s.wantStructured("add", object{"a": 1 << 40, "b": -1}, `{"sum":1099511627775}`))
}

func allBytes() string {
	var all []byte
	for b := range 256 {
		all = append(all, byte(b))
	}
	return string(all)
}

func blocks(s *suite) error {
	response, err := s.call("blocks", object{})
	if err != nil {
		return err
	}
	var got []string
	for _, b := range response.Content {
		text := b.Type + " " + b.MIMEType + " " + b.URI + " " + b.Name + " " + textOf(b)
		if r := b.Resource; r != nil {
			text += r.URI + " " + r.MIMEType + " " + r.Text + string(r.Data)
		}
		got = append(got, text)
	}
	want := []string{"text    text", "image image/png   " + allBytes(), "audio audio/wav   " + allBytes(),
		"resource_link text/plain conformance://text text ", "resource    conformance://text text/plain embedded"}
	if !slices.Equal(got, want) {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	return nil
}

func progressAndUpdates(s *suite) error {
	var last abi.Progress
	var updated []string
	for tool, arguments := range map[string]string{"progress": `{"steps":3}`,
		"update": `{"uri":"conformance://item/7"}`} {
		_, err := s.plugin.Call(s.ctx, &catalog.Invocation{
			Request:  &abi.Request{Method: abi.CallTool, Name: tool, Arguments: json.RawMessage(arguments)},
			Progress: func(p abi.Progress) { last = p },
			Updated:  func(uri string) { updated = append(updated, uri) },
		})
		if err != nil {
			return err
		}
	}
	if want := (abi.Progress{Progress: 3, Total: 3, Message: "step 3"}); last != want {
		return fmt.Errorf("the last report is %+v, want %+v", last, want)
	}
	if !slices.Equal(updated, []string{"conformance://item/7"}) {
		return fmt.Errorf("updated are %q", updated)
	}
	return nil
}

func resources(s *suite) error {
	var problems []error
	for _, test := range []struct{ request, want string }{
		{`{"uri":"conformance://text"}`, "conformance://text text/plain a text"},
		{`{"uri":"conformance://bytes"}`, "conformance://bytes application/octet-stream " + allBytes()},
		{`{"uri":"conformance://item/7%208","template":"conformance://item/{id}","variables":{"id":"7 8"}}`,
			"conformance://item/7%208 text/plain item 7 8"},
	} {
		request := &abi.Request{Method: abi.ReadResource}
		if err := json.Unmarshal([]byte(test.request), request); err != nil {
			return err
		}
		response, err := s.send(request)
		switch {
		case err != nil:
			problems = append(problems, err)
		case len(response.Contents) != 1:
			problems = append(problems,
				fmt.Errorf("%s: %d contents, error %v", request.URI, len(response.Contents), response.Error))
		default:
			c := response.Contents[0]
			if got := c.URI + " " + c.MIMEType + " " + c.Text + string(c.Data); got != test.want {
				problems = append(problems, fmt.Errorf("got %s, want %s", short(got), short(test.want)))
			}
		}
	}
	return errors.Join(problems...)
}

func prompts(s *suite) error {
	response, err := s.send(&abi.Request{Method: abi.GetPrompt, Name: "greet",
		Arguments: json.RawMessage(`{"name":"Aki"}`)})
	if err != nil {
		return err
	}
	if m := response.Messages; len(m) != 1 || m[0].Role != "user" || textOf(m[0].Content) != "Greet Aki." {
		return fmt.Errorf("messages are %+v, error %v", m, response.Error)
	}
	response, err = s.send(&abi.Request{Method: abi.Complete, Ref: &abi.Ref{Type: "ref/prompt", Name: "greet"},
		Argument: &abi.Argument{Name: "name", Value: "Ak"}})
	if err != nil {
		return err
	}
	if c := response.Completion; c == nil || !slices.Equal(c.Values, []string{"Ak1", "Ak2"}) {
		return fmt.Errorf("completion is %+v", c)
	}
	response, err = s.send(&abi.Request{Method: abi.Complete,
		Ref:      &abi.Ref{Type: "ref/resource", URI: "conformance://item/{id}"},
		Argument: &abi.Argument{Name: "id", Value: "7"}})
	if err == nil && (response.Completion == nil || len(response.Completion.Values) != 0) {
		err = fmt.Errorf("completion without a completer is %+v, error %v, want no values",
			response.Completion, response.Error)
	}
	return err
}

func notFound(s *suite) error {
	var problems []error
	for _, request := range []*abi.Request{
		{Method: abi.CallTool, Name: "absent"}, {Method: abi.ReadResource, URI: "conformance://absent"},
		{Method: abi.GetPrompt, Name: "absent"}, {Method: "hako/absent"},
	} {
		response, err := s.send(request)
		if err != nil || response.Error == nil || response.Error.Code != abi.CodeNotFound {
			problems = append(problems,
				fmt.Errorf("%s: %+v, %w, want the error not-found", request.Method, response, err))
		}
	}
	return errors.Join(problems...)
}

func handlers(s *suite) error {
	response, err := s.send(&abi.Request{Method: abi.ListHandlers})
	if err != nil {
		return err
	}
	h := response.Handlers
	if h == nil || len(h.Tools) != 19 || !slices.Contains(h.Tools, "echo") || len(h.Resources) != 2 ||
		!slices.Equal(h.ResourceTemplates, []string{"conformance://item/{id}"}) ||
		!slices.Equal(h.Prompts, []string{"greet"}) {
		return fmt.Errorf("handlers are %+v", h)
	}
	return nil
}

func sql(s *suite) error {
	return errors.Join(
		s.wantText("exec", object{"sql": "INSERT INTO t VALUES (9223372036854775807, '海'), (2, NULL)"}, "2"),
		s.wantText("query", object{"sql": "SELECT n FROM t WHERE s = ?", "text": "海"}, "9223372036854775807"),
		s.wantText("query", object{"sql": "SELECT s FROM t WHERE s = ?", "text": "海"}, "海"),
		s.wantFailure("query", object{"sql": "SELECT n FROM absent WHERE s = ?", "text": ""}, "invalid: "),
		s.wantFailure("exec", object{"sql": "INSERT INTO t VALUES (2, 'again')"}, "conflict: "),
	)
}

// sqlValues wants each value to come back from the PDK as the literal that it was read from.
func sqlValues(s *suite) error {
	literals := []string{"NULL", "9223372036854775807", "-9223372036854775808", "9007199254740993", "0", "2.0", "-0.1",
		"1.0e-7", "1.7976931348623157e308", "4.9406564584124654e-324", "9e999", "-9e999",
		"''", "'海\"\\''\n\t'", "'7'", "x'00ff80c3'", "x''", "x'2b'"}
	var same []string
	for i, literal := range literals {
		same = append(same, fmt.Sprintf(
			"iif(?%d IS %s AND typeof(?%[1]d) = typeof(%[2]s), '', ' %[1]d: ' || quote(?%[1]d))", i+1, literal))
	}
	// The first row has blobs too, whose bytes come before those of the last.
	first := strings.Repeat("x'0102', ", len(literals)-1) + "x''"
	return s.wantText("copy", object{"sql": "VALUES (" + first + "), (" + strings.Join(literals, ", ") + ")",
		"into": "SELECT 'different:' || " + strings.Join(same, " || ")}, "different:")
}

func sqlTransactions(s *suite) error {
	const insert, count = "INSERT INTO t VALUES (100, 'kept')", "SELECT count(*) FROM t WHERE s = ?"
	return errors.Join(
		s.wantText("transaction", object{"sql": insert, "keep": false}, "1"),
		s.wantText("query", object{"sql": count, "text": "kept"}, "0"),
		s.wantText("transaction", object{"sql": insert, "keep": true}, "1"),
		s.wantText("query", object{"sql": count, "text": "kept"}, "1"),
		s.wantFailure("transaction", object{"sql": insert, "keep": true}, "conflict: "),
	)
}
