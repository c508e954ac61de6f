package bearer

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestNew(t *testing.T) {
	t.Parallel()
	text, hash := New()
	other, _ := New()
	if !regexp.MustCompile(`^hako_[A-Za-z0-9_-]{43}$`).MatchString(text) || text == other {
		t.Errorf("tokens %s and %s", text, other)
	}
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(hash) {
		t.Errorf("hash %s", hash)
	}
	if idOf(text) != text[:11] || idOf(text+"x") != "" || idOf(text[1:]) != "" || idOf("") != "" {
		t.Errorf("ID of %s: %q", text, idOf(text))
	}
}

// TestFind: only the whole text finds a token, wherever it stands in the list, and however its hash is written.
func TestFind(t *testing.T) {
	t.Parallel()
	var tokens []Token
	var texts []string
	for _, name := range []string{"a", "b", "c"} {
		text, hash := New()
		if name == "b" {
			hash = "sha256:" + strings.ToUpper(strings.TrimPrefix(hash, "sha256:"))
		}
		texts, tokens = append(texts, text), append(tokens, Token{Name: name, Hash: hash})
	}
	for i, text := range texts {
		if found := Find(tokens, text); found != &tokens[i] {
			t.Errorf("%s: %+v", text, found)
		}
		for _, wrong := range []string{text[:len(text)-1], text + "\x00", strings.ToUpper(text), tokens[i].Hash, " " + text} {
			if found := Find(tokens, wrong); found != nil {
				t.Errorf("%q finds %s", wrong, found.Name)
			}
		}
	}
}

func TestExpired(t *testing.T) {
	t.Parallel()
	end := time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		expires, now time.Time
		want         bool
	}{{time.Time{}, end, false}, {end, end.Add(-1), false}, {end, end, true}} {
		if got := (&Token{Expires: test.expires}).Expired(test.now); got != test.want {
			t.Errorf("%v at %v: %t", test.expires, test.now, got)
		}
	}
}
