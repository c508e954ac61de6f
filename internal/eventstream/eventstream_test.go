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

// events reads a stream with a limit of 80 bytes for each line.
func events(r io.Reader) (list []string, failed error) {
	for data, err := range Events(r, 80) {
		if failed = err; err == nil || errors.Is(err, ErrUnended) {
			list = append(list, string(data))
		}
	}
	return list, failed
}

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
		"cut in an event":   {"data: a\n\ndata: b\n", []string{"a", "b"}, ErrUnended},
		"cut in a line":     {"data: a\n\ndata: b\ndata: c", []string{"a", "b\nc"}, ErrUnended},
		"cut in its name":   {"data: a\n\nda", []string{"a"}, nil},
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
				got, failed := events(split(r))
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

// FuzzEvents: events do not depend on where reads split the stream.
func FuzzEvents(f *testing.F) {
	for _, stream := range []string{"\ufeffid: 1\r\ndata: a\r\ndata:b\n\n: c\n\r\n", strings.Repeat("data: x", 20)} {
		f.Add(stream)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		want, wantErr := events(strings.NewReader(stream))
		got, err := events(iotest.OneByteReader(strings.NewReader(stream)))
		if !slices.Equal(got, want) || !errors.Is(err, wantErr) {
			t.Errorf("%q and %v byte by byte, %q and %v as a whole", got, err, want, wantErr)
		}
	})
}
