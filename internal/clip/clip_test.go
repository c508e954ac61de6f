package clip

import "testing"

func TestClip(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text                 string
		limit                int
		bytes, marked, runes string
	}{
		{"", 3, "", "", ""},
		{"abc", 3, "abc", "abc", "abc"},
		{"abcd", 3, "abc", "abc…", "ab…"},
		{"箱の中", 3, "箱", "箱…", "箱の中"},
		{"箱の中", 5, "箱", "箱…", "箱の中"},
		{"箱の中身", 3, "箱", "箱…", "箱の…"},
		{"a bcd", 3, "a b", "a b…", "a…"},
		{"箱", 1, "", "…", "箱"},
	} {
		if got := Bytes(test.text, test.limit); got != test.bytes {
			t.Errorf("Bytes(%q, %d) is %q, want %q", test.text, test.limit, got, test.bytes)
		}
		if got := Marked(test.text, test.limit); got != test.marked {
			t.Errorf("Marked(%q, %d) is %q, want %q", test.text, test.limit, got, test.marked)
		}
		if got := Runes(test.text, test.limit); got != test.runes {
			t.Errorf("Runes(%q, %d) is %q, want %q", test.text, test.limit, got, test.runes)
		}
	}
}
