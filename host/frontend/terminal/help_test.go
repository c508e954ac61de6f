package terminal

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

const helpText = `Say what becomes of a call, and
which rule decides it.

Start with:  hako serve   and point a client at it

Usage:
  hako policy explain TOOL [flags]

Examples:
  hako policy explain file_write --token ci --arguments '{"path":"a.txt","content":"x"}'

Copied:

	hako completion bash > /etc/bash_completion.d/hako # with a long remark behind it

Flags:
      --as string           the user who calls
      --group stringArray   a group of the user, besides those of the policy; may be given several times
`

// TestHelpWidth: paragraphs and lists fit into the width, and examples stay whole.
func TestHelpWidth(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		120: strings.ReplaceAll(helpText, "and\nwhich", "and which"),
		60: `Say what becomes of a call, and which rule decides it.

Start with:  hako serve   and point a client at it

Usage:
  hako policy explain TOOL [flags]

Examples:
  hako policy explain file_write --token ci --arguments '{"path":"a.txt","content":"x"}'

Copied:

	hako completion bash > /etc/bash_completion.d/hako # with a long remark behind it

Flags:
      --as string           the user who calls
      --group stringArray   a group of the user, besides
                            those of the policy; may be
                            given several times
`,
		40: `Say what becomes of a call, and which
rule decides it.

Start with:  hako serve
        and point a client at it

Usage:
  hako policy explain TOOL [flags]

Examples:
  hako policy explain file_write --token ci --arguments '{"path":"a.txt","content":"x"}'

Copied:

	hako completion bash > /etc/bash_completion.d/hako # with a long remark behind it

Flags:
      --as string
        the user who calls
      --group stringArray
        a group of the user, besides
        those of the policy; may be
        given several times
`,
	} {
		got := layOutHelp(helpText, width)
		if got != want {
			t.Errorf("%d columns:\n%s", width, got)
		}
		for line := range strings.Lines(got) {
			copied := strings.Contains(line, "--arguments '") || line[0] == '\t'
			if !copied && ansi.StringWidth(strings.TrimRight(line, "\n")) > width {
				t.Errorf("wider than %d columns: %s", width, line)
			}
		}
	}
}
