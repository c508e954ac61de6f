package audit

import (
	"testing"

	"github.com/hako-run/hako/internal/visible"
)

// TestHostileHidden: who reads the files of the log as they are sees every character, and readers get what was
// recorded.
func TestHostileHidden(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"reorders": "a\u202eb", "in tags": "a\U000e0041b", "control": "a\x1b[2J\u009b2J", "zero width": "ad\u200bmin",
		"a line of its own": "a\n{\"seq\":9}\u2028b",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			event := &Event{Type: TypeCall, Target: Target{Name: text}, Subject: Subject{ClientName: text},
				Detail: map[string]string{text: text}}
			body, err := event.encode()
			if err != nil {
				t.Fatal(err)
			}
			if r, found := visible.First(string(body), ""); found {
				t.Errorf("%U is in the log: %s", r, body)
			}
			entry, err := parseEntry(chain{}.line(body))
			if err != nil || entry.Target.Name != text || entry.Subject.ClientName != text ||
				entry.Detail[text] != text {
				t.Errorf("read back as %+v, %v", entry, err)
			}
		})
	}
}
