package stack

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hako-run/hako/internal/visible"
)

func TestParse(t *testing.T) {
	t.Parallel()
	text := "wasm error: unreachable\nwasm stack trace:\n\t.$12(i32,i32) i32\n\t2.$7()\n\thako:core/1.log(i32,i32,i32)\n" +
		"\t... maybe followed by omitted frames (recovered by wazero)\nwasm stack trace:\n\t0.$3(i64)\n\n" +
		"Go runtime stack trace:\n\t.$99()\n"
	want := []Frame{{Function: 12}, {Module: "2", Function: 7}, {Host: "hako:core/1.log"},
		{Host: "... maybe followed by omitted frames "}, {Module: "0", Function: 3}}
	if got := Parse(text); !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
	if got := Parse("no trace\n\t.$1()"); got != nil {
		t.Errorf("without a trace: %+v", got)
	}
	if got := Parse(traceHeading + strings.Repeat("\n\t.$1()", 1000)); len(got) != maxFrames {
		t.Errorf("%d frames", len(got))
	}
}

func TestReadable(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"greet":       "greet",
		"main.(*T).M": "main.(*T).M",
		"_ZN4core9panicking9panic_fmt17h0123456789abcdefE": "core::panicking::panic_fmt",
		"_RNvNtCs1234_7mycrate3foo3bar":                    "mycrate::foo::bar",
		"app::Box<int>::get(int)":                          "app::Box<int>::get(int)",
		"a\x1b[31mb\nc":                                    `a\u001b[31mb\nc`,
		"_ZN" + strings.Repeat("1a", 2000) + "E":           "_ZN" + strings.Repeat("1a", 98) + "…",
	} {
		if got := Readable(name); got != want {
			t.Errorf("%.60q: %q, want %q", name, got, want)
		}
	}
}

func TestGoTrace(t *testing.T) {
	t.Parallel()
	const printed = `before
panic: oops
goroutine 1 [running]:
runtime/debug.Stack()
	runtime/debug/stack.go:26 +0x5
panic({0x1234?, 0x5678?})
	runtime/panic.go:792 +0x132
main.(*list).pick(...)
	example.com/greet/list.go:7
main.greet({0x1, 0x2}, {{0x3, 0x4}})
	example.com/greet/main.go:31 +0x1d
github.com/hako-run/hako/pdk.HandleTool[...].func1({0x1, 0x2})
	github.com/hako-run/hako/pdk/pdk.go:71 +0x5
created by main.start in goroutine 1
	example.com/greet/main.go:9 +0x5

a(b)
	c`
	const want = `before
panic: oops
goroutine 1 [running]:
  at main.(*list).pick (example.com/greet/list.go:7)
  at main.greet (example.com/greet/main.go:31)
  at created by main.start in goroutine 1 (example.com/greet/main.go:9)
a(b)
	c`
	g := GoTrace{Library: "github.com/hako-run/hako/pdk."}
	var got []string
	for line := range strings.SplitSeq(printed, "\n") {
		g.Line(line, func(line string) { got = append(got, line) })
	}
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// FuzzReadable: whatever a name section has, a name is short and on one line.
func FuzzReadable(f *testing.F) {
	for _, name := range []string{"_ZN3app3getIiE17h0123456789abcdefE", "_RNvNtCs1234_7mycrate3foo3bar", "_RINvNtC3std3mem8align_ofdE",
		"_Z3fooIXszL_ZZNK_ZN3barEEEv", "_ZNSt6vectorIS_IS_IiEEE1fEv", "\x00\x1b"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := Readable(name)
		if utf8.RuneCountInString(got) > maxName || visible.Line(got) != got {
			t.Errorf("%q: %q", name, got)
		}
	})
}

// FuzzGoTrace: no line becomes longer than what was read for it, and Parse takes anything.
func FuzzGoTrace(f *testing.F) {
	f.Add("goroutine 1 [running]:\nmain.f(0x1)\n\ta.go:1 +0x2\n\nx")
	f.Add(traceHeading + "\n\t.$1()\n\ta.b(i32) i32")
	f.Fuzz(func(t *testing.T, text string) {
		var g GoTrace
		written := 0
		for line := range strings.SplitSeq(text, "\n") {
			g.Line(line, func(line string) { written += len(line) })
		}
		if written > 2*len(text)+10 {
			t.Errorf("%d bytes of %d", written, len(text))
		}
		if frames := Parse(text); len(frames) > maxFrames {
			t.Errorf("%d frames", len(frames))
		}
	})
}
