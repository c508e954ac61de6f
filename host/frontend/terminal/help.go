package terminal

import (
	"strings"
)

// helpWidth is the width of help texts in columns on a wider terminal, and where there is no terminal.
const helpWidth = 100

// Help lays out a help text for the stream: at the width of the terminal, at most 100 columns. Paragraphs are filled,
// and a line of a list that is too long is continued below its last column. Examples and lines that begin with a tab
// stay as they are: people copy them.
func Help(stream any, text string) Block {
	width := helpWidth
	if n := columns(stream); n > 0 {
		width = min(width, n)
	}
	return Block(layOutHelp(text, width))
}

func layOutHelp(text string, width int) string {
	var b strings.Builder
	var paragraph []string
	fill := func() {
		writeHanging(&b, "", strings.Join(paragraph, " "), width)
		paragraph = nil
	}
	examples := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		column := strings.LastIndex(line, "  ") + len("  ")
		switch {
		case line == "":
			fill()
			examples = false
			b.WriteByte('\n')
		case examples, line[0] == '\t':
			fill()
			b.WriteString(line + "\n")
		case column >= len("  "): // a line of a list
			fill()
			writeHanging(&b, line[:column], line[column:], width)
		default:
			paragraph = append(paragraph, line)
			examples = line == "Examples:"
		}
	}
	fill()
	return b.String()
}

// hangingIndent is the indentation of a text whose head leaves it less than half of the width.
const hangingIndent = "        "

// writeHanging writes text after head and below the end of head.
func writeHanging(b *strings.Builder, head, text string, width int) {
	if head+text == "" {
		return
	}
	first, rest := span{text: head}, span{text: strings.Repeat(" ", len(head))}
	if strings.TrimSpace(head) != "" && first.width() > width/2 && first.width()+len(text) > width {
		b.WriteString(strings.TrimRight(head, " ") + "\n")
		first, rest = span{text: hangingIndent}, span{text: hangingIndent}
	}
	for _, r := range hang(first, rest, []span{{text: text}}, width) {
		b.WriteString(strings.TrimRight(r.String(), " ") + "\n")
	}
}
