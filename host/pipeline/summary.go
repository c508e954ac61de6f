package pipeline

import (
	"slices"
	"strings"

	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/internal/jsonstring"
	"github.com/hako-run/hako/pdk/abi"
)

// summaryField, among the recorded fields of a tool, enables recording the text of its results.
const summaryField = "output_summary"

// summary describes a response for the audit log.
func (p *Pipeline) summary(record *openRecord, r *abi.Response) *audit.OutputSummary {
	if r == nil {
		return nil
	}
	s := &audit.OutputSummary{Kind: "empty", Counts: map[string]int{}, Bytes: record.Output}
	count := func(kind string, n int) {
		switch {
		case n == 0:
			return
		case s.Kind == "empty":
			s.Kind = kind
		case s.Kind != kind:
			s.Kind = "mixed"
		}
		s.Counts[kind] += n
	}
	for _, c := range r.Content {
		count(contentKind(c.Type), 1)
	}
	count("contents", len(r.Contents))
	count("messages", len(r.Messages))
	if r.Completion != nil {
		s.Kind, s.Counts["values"] = "completion", len(r.Completion.Values)
	}
	if len(r.StructuredContent) > 0 {
		s.Kind, s.Counts["items"] = "object", countItems(r.StructuredContent)
	}
	if r.IsError || r.Error != nil {
		s.Kind = "error"
	}
	if slices.Contains(p.settings.Load().AuditFields[record.Name], summaryField) {
		s.Text = p.recordedText(r)
	}
	return s
}

// contentKind returns a content type of MCP, or "other": guests may send any text as type.
func contentKind(kind string) string {
	switch kind {
	case abi.Text, abi.Image, abi.Audio, abi.ResourceLink, abi.Embedded:
		return kind
	}
	return "other"
}

// recordedText returns the beginning of the text of a response, with secrets masked before it is cut.
func (p *Pipeline) recordedText(r *abi.Response) string {
	var text strings.Builder
	for _, c := range r.Content {
		if text.Len() < 2*maxRecorded {
			text.WriteString(c.Text[:min(len(c.Text), 2*maxRecorded)])
		}
	}
	return clipped(p.maskSecrets(text.String()))
}

// countItems counts the elements of lists that are members of a JSON object. The JSON must be valid.
func countItems(text []byte) int {
	depth, items := 0, 0
	list, empty := false, false // list: inside a list at depth 2; empty: before its first element
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case ']', '}':
			if depth == 2 {
				list = false
			}
			depth--
			continue
		}
		if list && depth == 2 && (empty || c == ',') {
			items++
			empty = false
		}
		switch c {
		case '[', '{':
			if depth++; depth == 2 {
				list, empty = c == '[', true
			}
		case '"':
			i = jsonstring.End(text, i+1)
		}
	}
	return items
}
