package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/hako-run/hako/pdk/abi"
)

// progress shows how far a call has come, on one line of a terminal. It is nil, and shows nothing, elsewhere.
type progress struct {
	out   io.Writer
	drawn bool
}

func newProgress(out io.Writer) *progress {
	if !isTerminal(out) {
		return nil
	}
	return &progress{out: out}
}

// isTerminal reports whether a person is probably at the other end of the stream.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// eraseLine returns to the start of a terminal's line and empties it.
const eraseLine = "\r\x1b[K"

func (p *progress) show(report abi.Progress) {
	if p == nil {
		return
	}
	p.drawn = true
	fmt.Fprint(p.out, eraseLine+progressText(report))
}

func progressText(report abi.Progress) string {
	message := strings.ReplaceAll(printable(report.Message), "\n", " ")
	if report.Total > 0 {
		return fmt.Sprintf("%3.0f%% %s", 100*report.Progress/report.Total, message)
	}
	return fmt.Sprintf("%g %s", report.Progress, message)
}

// printable is text from a guest without what would move a terminal's cursor or do worse (control characters but newline and
// tab), or show it in another order than it is.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, text)
}

func (p *progress) clear() {
	if p != nil && p.drawn {
		fmt.Fprint(p.out, eraseLine)
	}
}
