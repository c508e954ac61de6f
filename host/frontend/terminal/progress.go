package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/hako-run/hako/pdk/abi"
)

// Progress shows how far a call has come, on one line of a terminal. A nil Progress shows nothing.
type Progress struct {
	out   *Screen
	drawn bool
}

// NewProgress returns the Progress of a stream; nil if that is no terminal that can erase a line.
func NewProgress(out io.Writer) *Progress {
	if !knowsSequences(out) {
		return nil
	}
	return &Progress{out: NewScreen(out)}
}

// eraseLine returns to the start of a terminal's line and empties it.
const eraseLine = "\r\x1b[K"

// Show replaces the line.
func (p *Progress) Show(report abi.Progress) {
	if p == nil {
		return
	}
	p.drawn = true
	p.out.Styled(eraseLine, progressText(report), "")
}

func progressText(report abi.Progress) string {
	message := strings.Join(strings.Fields(report.Message), " ")
	if report.Total > 0 {
		return fmt.Sprintf("%3.0f%% %s", 100*report.Progress/report.Total, message)
	}
	return fmt.Sprintf("%g %s", report.Progress, message)
}

// Clear erases the line.
func (p *Progress) Clear() {
	if p != nil && p.drawn {
		p.out.Styled(eraseLine, "", "")
	}
}
