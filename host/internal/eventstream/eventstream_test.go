package eventstream

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stream string
		want   []string
		err    error
	}{
		"one":               {"data: a\n\n", []string{"a"}, nil},
		"several":           {"event: x\ndata: a\n\nid: 1\ndata:b\n\n", []string{"a", "b"}, nil},
		"several lines":     {"data: a\ndata:\ndata:  b\n\n", []string{"a\n\n b"}, nil},
		"carriage returns":  {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}, nil},
		"comments":          {": hello\n\n:\ndata: a\n: b\n\n", []string{"a"}, nil},
		"without data":      {"event: ping\n\ndata\n\ndata: a\n\n", []string{"", "a"}, nil},
		"cut in an event":   {"data: a\n\ndata: b\n", []string{"a"}, nil},
		"nothing":           {"", nil, nil},
		"a byte order mark": {"\ufeffdata: a\n\ndata: \ufeff\n\n", []string{"a", "\ufeff"}, nil},
		"half a mark":       {"\xef\xbb\n\ndata: a\n\n", []string{"a"}, nil},
		"a full line":       {"data: " + strings.Repeat("b", 73) + "\n\n", []string{strings.Repeat("b", 73)}, nil},
		"over the limit":    {"data: " + strings.Repeat("b", 75) + "\n\n", nil, bufio.ErrTooLong},
		"an end in a line":  {"data: a\n\ndata: b\n\ndata", []string{"a", "b"}, nil},
		"a long line":       {"data: a\n\ndata: " + strings.Repeat("b", 100) + "\n\n", []string{"a"}, bufio.ErrTooLong},
		"a broken transfer": {"data: a\n\nfail", []string{"a"}, io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for name, split := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r },
				"byte by byte": iotest.OneByteReader} {
				var r io.Reader = strings.NewReader(test.stream)
				if text, ok := strings.CutSuffix(test.stream, "fail"); ok {
					r = io.MultiReader(strings.NewReader(text), iotest.ErrReader(io.ErrUnexpectedEOF))
				}
				var got []string
				var failed error
				for data, err := range Events(split(r), 80) {
					if failed = err; err == nil {
						got = append(got, string(data))
					}
				}
				if !slices.Equal(got, test.want) || !errors.Is(failed, test.err) {
					t.Errorf("%s: %q and %v, want %q and %v", name, got, failed, test.want, test.err)
				}
			}
		})
	}
}

// TestEventsStop stops before the end.
func TestEventsStop(t *testing.T) {
	t.Parallel()
	for data := range Events(strings.NewReader("data: a\n\ndata: b\n\n"), 80) {
		if string(data) != "a" {
			t.Errorf("an event after the loop ended: %s", data)
		}
		break
	}
}
