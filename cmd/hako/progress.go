package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/hako-run/hako/pdk/abi"
)

// progress shows how far a call has come, on one line of a terminal. It is nil, and shows nothing, elsewhere.
type progress struct {
	out   *screen
	drawn bool
}

func newProgress(out io.Writer) *progress {
	if !isTerminal(out) {
		return nil
	}
	return &progress{out: newScreen(out)}
}

// eraseLine returns to the start of a terminal's line and empties it.
const eraseLine = "\r\x1b[K"

func (p *progress) show(report abi.Progress) {
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

func (p *progress) clear() {
	if p != nil && p.drawn {
		p.out.Styled(eraseLine, "", "")
	}
}
