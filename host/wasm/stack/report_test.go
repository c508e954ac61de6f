package stack

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hako-run/hako/internal/visible"
)

const panicNote = "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"

func TestReadReport(t *testing.T) {
	t.Parallel()
	panicked := func(message string) string {
		return "thread '<unnamed>' (1) panicked at crates/runtime/src/call.rs:84:36:\n" + message + "\n" + panicNote
	}
	const traceback = "Traceback (most recent call last):\n  File \"/0/app.py\", line 8, in boom\n    return inner({})\n" +
		"  File \"/0/shop/stock.py\", line 5, in inner\nKeyError: 'foo'"
	pythonReport := Report{"KeyError: 'foo'", []string{"inner (shop/stock.py:5)", "boom (app.py:8)"}, true}
	for name, test := range map[string]struct {
		printed string
		want    Report
	}{
		"nothing":      {"warming up", Report{}},
		"a Rust panic": {"before\n" + panicked("index out of bounds:\n the length is 2"), Report{"index out of bounds: the length is 2", []string{"crates/runtime/src/call.rs:84:36"}, false}},
		"an exception of JavaScript": {panicked(`Failed to call 'plain': Exception(Exception { message: Some("cannot read property 'bar' of \"x\""), ` +
			`stack: Some("    at inner (/plugin.js:5:28)\n    at plain (/plugin.js:10:10)\n    at apply (native)\n    at <anonymous> (/pdk/guard.js:13:30)\n") })`),
			Report{`cannot read property 'bar' of "x"`, []string{"inner (plugin.js:5:28)", "plain (plugin.js:10:10)"}, true}},
		"an exception without a message": {panicked(`Failed to call 'f': Exception(Exception { message: None, stack: None })`),
			Report{"", nil, true}},
		"a value of JavaScript": {panicked(`expected number: FromJs { from: "string", to: "i32", message: None }`),
			Report{"expected number, not string", nil, true}},
		"a missing function": {panicked(`function 'greet' not found: FromJs { from: "undefined", to: "function", message: None }`),
			Report{"function 'greet' not found", nil, true}},
		"a value of Python": {panicked("called `Result::unwrap()` on an `Err` value: PyErr { type: <class 'TypeError'>, " +
			`value: TypeError("'str' object cannot be interpreted as an integer"), traceback: None }`),
			Report{"TypeError: 'str' object cannot be interpreted as an integer", nil, true}},
		"an exception of Python": {traceback + "\n" + panicked("Python function threw an unexpected exception"), pythonReport},
		"without the runtime":    {traceback, pythonReport},
		"one that was caught":    {traceback + "\ngoing on", Report{}},
		"the last of several":    {panicked("first") + "\n" + panicked("second"), Report{"second", []string{"crates/runtime/src/call.rs:84:36"}, false}},
		"hidden characters":      {panicked("a\x1b[31mb"), Report{`a\u001b[31mb`, []string{"crates/runtime/src/call.rs:84:36"}, false}},
	} {
		if got := ReadReport(strings.Split(test.printed, "\n")); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %#v, want %#v", name, got, test.want)
		}
	}
}

// FuzzReadReport: whatever a guest prints, a report is short and its texts are lines.
func FuzzReadReport(f *testing.F) {
	f.Add("Traceback (most recent call last):\n  File \"a\", line 1, in f\nE: x")
	f.Add("thread 'a' panicked at x:\nFailed to call 'f': Exception(Exception { message: Some(\"a\"), stack: Some(\"  at b\\n\") })")
	f.Add("thread 'a' panicked at x:\nexpected: FromJs { from: \"a\", to: \"b\", message: None }")
	f.Fuzz(func(t *testing.T, printed string) {
		r := ReadReport(strings.Split(printed, "\n"))
		if utf8.RuneCountInString(r.Message) > maxReportMessage || len(r.Frames) > maxReportFrames {
			t.Errorf("%#v", r)
		}
		for _, text := range append(r.Frames, r.Message) {
			if visible.Line(text) != text {
				t.Errorf("%q", text)
			}
		}
	})
}
