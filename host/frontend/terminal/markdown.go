package terminal

import (
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/hako-run/hako/internal/visible"
)

// markdown lays out Markdown for a terminal. Links show their addresses. A line break of the source stays one, as in
// other chats: models break lines between facts, not at a width. Without colour, headings, code and emphasis keep the
// marks of the source.
type markdown struct {
	source []byte
	colour bool
}

var markdownParser = parser.NewParser(
	parser.WithBlockParsers(parser.DefaultBlockParsers()...),
	parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
		util.Prioritized(extension.NewStrikethroughParser(), 500))...),
	parser.WithParagraphTransformers(append(parser.DefaultParagraphTransformers(),
		util.Prioritized(extension.NewTableParagraphTransformer(), 200))...),
	parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
)

// block is a paragraph, list, table or the like at the top level of a text.
type block struct {
	rows []row
	// fixed reports whether the first rows stay as they are when the text continues.
	fixed bool
}

// layOut renders untrusted Markdown from the block with the index from on. Hidden characters are escaped.
func layOut(source string, from, width int, colour bool) (blocks []block) {
	m := &markdown{[]byte(visible.Escape(source)), colour}
	root := markdownParser.Parse(text.NewReader(m.source))
	for n, i := root.FirstChild(), 0; n != nil; n, i = n.NextSibling(), i+1 {
		if i >= from {
			_, table := n.(*extast.Table)
			blocks = append(blocks, block{m.block(n, width), !table})
		}
	}
	return blocks
}

// rowsOf are all rows of a text, with an empty one between blocks.
func rowsOf(blocks []block) (rows []row) {
	for i, b := range blocks {
		if i > 0 {
			rows = append(rows, nil)
		}
		rows = append(rows, b.rows...)
	}
	return rows
}

// styled returns text in a style, if colours are wanted.
func (m *markdown) styled(style, text string) span {
	if !m.colour {
		style = ""
	}
	return span{style, text}
}

func (m *markdown) block(n ast.Node, width int) (rows []row) {
	switch n := n.(type) {
	case *ast.Heading:
		mark := strings.Repeat("#", n.Level) + " "
		if m.colour {
			mark = ""
		}
		return wrap(append([]span{{text: mark}}, m.inline(n, bold)...), width)
	case *ast.List:
		return m.list(n, width)
	case *ast.Blockquote:
		for _, r := range m.children(n, width-2) {
			rows = append(rows, append(row{m.styled(dim, "│ ")}, r...))
		}
		return rows
	case *ast.FencedCodeBlock:
		return m.code(n, string(n.Language(m.source)), width)
	case *ast.CodeBlock:
		return m.code(n, "", width)
	case *ast.HTMLBlock:
		source := strings.TrimRight(string(n.Lines().Value(m.source)), "\n")
		if n.HasClosure() {
			source += "\n" + strings.TrimRight(string(n.ClosureLine.Value(m.source)), "\n")
		}
		return wrap([]span{{text: spaced(source)}}, width)
	case *ast.ThematicBreak:
		return []row{{m.styled(dim, strings.Repeat("─", min(width, 40)))}}
	case *extast.Table:
		return m.table(n, width)
	}
	return wrap(m.inline(n, ""), width)
}

// children are the blocks within a block, with an empty row between paragraphs.
func (m *markdown) children(n ast.Node, width int) (rows []row) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if _, list := c.(*ast.List); len(rows) > 0 && !list {
			rows = append(rows, nil)
		}
		rows = append(rows, m.block(c, width)...)
	}
	return rows
}

func (m *markdown) list(n *ast.List, width int) (rows []row) {
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = strconv.Itoa(number) + ". "
			number++
		}
		indent := strings.Repeat(" ", ansi.StringWidth(mark))
		for i, r := range m.children(item, width-len(indent)) {
			prefix := span{text: indent}
			if i == 0 {
				prefix = m.styled(dim, mark)
			}
			rows = append(rows, append(row{prefix}, r...))
		}
		if item.FirstChild() == nil {
			rows = append(rows, row{m.styled(dim, mark)})
		}
	}
	return rows
}

// code shows code as it is. Lines that are too long continue on the next row.
func (m *markdown) code(n ast.Node, language string, width int) (rows []row) {
	edge := m.styled(dim, "▏ ")
	if language != "" {
		rows = wrap([]span{edge, m.styled(dim, visible.Line(spaced(language)))}, width)
	}
	for line := range strings.Lines(string(n.Lines().Value(m.source))) {
		var piece []cell
		used := 0
		flush := func() {
			rows = append(rows, append(row{edge}, join(piece)...))
			piece, used = nil, 0
		}
		for _, c := range cells([]span{m.styled(cyan, spaced(strings.TrimRight(line, "\r\n")))}) {
			if used += c.width; used > width-edge.width() && len(piece) > 0 {
				flush()
				used = c.width
			}
			piece = append(piece, c)
		}
		flush()
	}
	return rows
}

// spaced replaces tabs, whose width depends on the terminal.
func spaced(line string) string { return strings.ReplaceAll(line, "\t", "    ") }

// inline returns the text of a block.
func (m *markdown) inline(n ast.Node, style string) (spans []span) {
	add := func(style, text string) { // a reference in an address may stand for a hidden character
		spans = append(spans, m.styled(style, visible.Line(spaced(text))))
	}
	marked := func(n ast.Node, more, mark string) {
		if m.colour {
			mark = ""
		}
		add(style, mark)
		spans = append(spans, m.inline(n, style+more)...)
		add(style, mark)
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			add(style, unescape(c.Segment.Value(m.source)))
			if c.HardLineBreak() || c.SoftLineBreak() {
				spans = append(spans, span{text: "\n"})
			}
		case *ast.String:
			add(style, string(c.Value))
		case *ast.CodeSpan:
			mark := "`"
			if m.colour {
				mark = ""
			}
			var code strings.Builder
			for t := c.FirstChild(); t != nil; t = t.NextSibling() {
				if t, ok := t.(*ast.Text); ok {
					code.Write(t.Segment.Value(m.source))
				}
			}
			add(style+cyan, mark+strings.ReplaceAll(code.String(), "\n", " ")+mark)
		case *ast.Emphasis:
			marked(c, []string{italic, bold}[c.Level-1], strings.Repeat("*", c.Level))
		case *extast.Strikethrough:
			marked(c, struck, "~~")
		case *ast.Link:
			spans = append(spans, m.inline(c, style+underline)...)
			add(style+dim, " ("+string(c.Destination)+")")
		case *ast.Image:
			spans = append(spans, m.inline(c, style)...)
			add(style+dim, " ("+string(c.Destination)+")")
		case *ast.AutoLink:
			add(style+underline, string(c.URL(m.source)))
		case *ast.RawHTML:
			add(style, string(c.Segments.Value(m.source)))
		default:
			spans = append(spans, m.inline(c, style)...)
		}
	}
	return spans
}

// unescape removes backslashes before punctuation and resolves references to characters.
func unescape(source []byte) string {
	return string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(source))))
}

// minColumn is the narrowest column of a table that was made narrower.
const minColumn = 6

// table lays out a table. Columns share the width: the widest become narrower first, and their cells are wrapped.
func (m *markdown) table(n *extast.Table, width int) (rows []row) {
	var content [][][]span
	var widths []int
	for line := n.FirstChild(); line != nil; line = line.NextSibling() {
		style := ""
		if _, head := line.(*extast.TableHeader); head {
			style = bold
		}
		var fields [][]span
		for field := line.FirstChild(); field != nil; field = field.NextSibling() {
			spans := m.inline(field, style)
			if len(fields) == len(widths) {
				widths = append(widths, 1)
			}
			widths[len(fields)] = max(widths[len(fields)], row(spans).width())
			fields = append(fields, spans)
		}
		content = append(content, fields)
	}
	narrow(widths, width-3*(len(widths)-1))
	for i, fields := range content {
		rows = append(rows, m.tableRow(fields, widths, n.Alignments)...)
		if i == 0 {
			var rules []string
			for _, w := range widths {
				rules = append(rules, strings.Repeat("─", w))
			}
			rows = append(rows, row{m.styled(dim, strings.Join(rules, "─┼─"))})
		}
	}
	return rows
}

// narrow reduces widths until their sum is at most total, or each is minColumn.
func narrow(widths []int, total int) {
	for {
		sum, widest := 0, 0
		for i, w := range widths {
			if sum += w; w > widths[widest] {
				widest = i
			}
		}
		if sum <= total || len(widths) == 0 || widths[widest] <= minColumn {
			return
		}
		widths[widest]--
	}
}

// tableRow lays out the fields of one row of a table, which may need several rows of the terminal.
func (m *markdown) tableRow(fields [][]span, widths []int, align []extast.Alignment) (rows []row) {
	wrapped, height := make([][]row, len(widths)), 1
	for i, fields := range fields {
		wrapped[i] = wrap(fields, widths[i])
		height = max(height, len(wrapped[i]))
	}
	for y := range height {
		var line row
		for x, w := range widths {
			var field row
			if y < len(wrapped[x]) {
				field = wrapped[x][y]
			}
			gap := span{text: strings.Repeat(" ", max(0, w-field.width()))}
			if x > 0 {
				line = append(line, m.styled(dim, " │ "))
			}
			if x < len(align) && align[x] == extast.AlignRight {
				line = append(append(line, gap), field...)
			} else if line = append(line, field...); x < len(widths)-1 {
				line = append(line, gap)
			}
		}
		rows = append(rows, line)
	}
	return rows
}
