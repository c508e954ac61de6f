package approval

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/visible"
)

// Replacement compares an argument with the value that the call would replace. It has Problem, or else Hunks, of which
// there are none if nothing would change.
type Replacement struct {
	Argument string `json:"argument"`
	Hunks    []Hunk `json:"hunks,omitempty"`
	// Added and Removed count lines. Rest counts changed lines that are not in Hunks.
	Added   int `json:"added,omitempty"`
	Removed int `json:"removed,omitempty"`
	Rest    int `json:"rest,omitempty"`
	// Unseen reports whether the values differ in something that no line shows: the line break at the end, a masked
	// secret, or the type of a value in a list.
	Unseen bool `json:"unseen,omitempty"`
	// Problem explains why there is no comparison.
	Problem manifest.Text `json:"problem,omitempty"`
	// Digest identifies the present value, or the failure to read it.
	Digest string `json:"digest"`
}

// Hunk has neighboring lines of a diff, each after "- ", "+ " or two spaces.
type Hunk struct {
	// Line is the number of the first one in the new value.
	Line  int      `json:"line"`
	Lines []string `json:"lines"`
}

// maxCompared bounds the values that are compared, in bytes each.
const maxCompared = 1 << 20

// Compare sets Replaces to the difference between two JSON values: present, nil if problem says why it is not known,
// and value, that of the argument. mask hides secrets in their texts.
func (q *Question) Compare(argument string, present, value json.RawMessage, problem manifest.Text,
	mask func(string) string) {
	digest := sha256.Sum256(present)
	r := &Replacement{Argument: argument, Problem: problem, Digest: hex.EncodeToString(digest[:])}
	q.Replaces = r
	if problem != nil {
		return
	}
	if size := max(len(present), len(value)); size > maxCompared {
		r.Problem = manifest.Text{
			"en": fmt.Sprintf("it has %d KiB, and at most %d are compared", size>>10, maxCompared>>10),
			"ja": fmt.Sprintf("%d KiB あり、比較できるのは %d KiB までです", size>>10, maxCompared>>10),
		}
		return
	}
	before, after := mask(plainText(present)), mask(plainText(value))
	edits := diff(textLines(before), textLines(after), maxRounds)
	for _, e := range edits {
		switch e.kind {
		case '+':
			r.Added++
		case '-':
			r.Removed++
		}
	}
	r.Hunks, r.Rest = hunks(edits)
	r.Unseen = before != "" && after != "" && strings.HasSuffix(before, "\n") != strings.HasSuffix(after, "\n") ||
		len(r.Hunks) == 0 && !bytes.Equal(canonical(present), canonical(value))
}

// Differs reports whether the value that the call would replace is another one than in the earlier question.
func (q *Question) Differs(earlier *Question) bool {
	return q.Replaces != nil && (earlier.Replaces == nil || q.Replaces.Digest != earlier.Replaces.Digest)
}

// textLines are the lines of a text. An empty text has none.
func textLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// plainText is a value as text to compare: a text as it is, a list with an item on each line, anything else as JSON.
func plainText(raw json.RawMessage) string {
	n, err := newNode(jsontext.Value(raw), 0)
	switch {
	case err != nil:
		return string(raw)
	case n.kind == '[':
		var b strings.Builder
		for _, item := range n.items {
			b.WriteString(item.row() + "\n")
		}
		return b.String()
	case n.kind == '{':
		formatted := jsontext.Value(raw)
		_ = formatted.Indent()
		return string(formatted)
	}
	return n.text
}

// row is an item of a list on one line. Empty cells at its end are left out.
func (n node) row() string {
	if n.kind != '[' {
		return visible.Line(n.text)
	}
	cells := make([]string, len(n.items))
	for i, cell := range n.items {
		if cell.kind != 'n' {
			cells[i] = visible.Line(cell.text)
		}
	}
	return strings.TrimRight(strings.Join(cells, " · "), " ·")
}

// describe adds the difference to the description of the argument.
func (r *Replacement) describe(v *Value, language string, w *words) {
	if r.Problem != nil {
		v.Cut = strings.TrimSpace(v.Cut + "\n" + fmt.Sprintf(w.notCompared, visible.Line(r.Problem.In(language))))
		return
	}
	*v = Value{Name: v.Name, Cut: fmt.Sprintf(w.compared, r.Added, r.Removed)}
	switch {
	case r.Unseen:
		v.Cut += w.unseen
	case len(r.Hunks) == 0:
		v.Cut = w.unchanged
	}
	for i, hunk := range r.Hunks {
		if i > 0 || hunk.Line > 1 {
			v.Diff = append(v.Diff, fmt.Sprintf(w.fromLine, hunk.Line))
		}
		v.Diff = append(v.Diff, hunk.Lines...)
	}
	if r.Rest > 0 {
		v.Cut += fmt.Sprintf(w.notShown, r.Rest)
	}
}
