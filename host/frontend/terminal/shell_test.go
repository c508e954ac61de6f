package terminal

import "testing"

func TestShellWord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"/srv/plugins": "/srv/plugins", "my plugins": "'my plugins'", "it's": `'it'\''s'`} {
		if got := ShellWord(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
