package file

import (
	"testing"
	"unicode"
)

// TestHostileWindowsNames: names that Windows maps to another file, a stream, a device or a drive are invalid.
func TestHostileWindowsNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"C:", "C:secret", `C:\secret`, `\\?\C:\secret`, `\\.\pipe\x`, `\\server\share`, `..\..\secret`, `a\b`,
		"file:stream", "file::$DATA", "secret.", "secret ",
		"secret. .", "SECRET~1", "SECRET~1.TXT", "a~9b", "PROGRA~2", "SE12~4AB~3",
		"a*", "a?", "a<", "a>", `a"`, "a|b", "a\x01", "a\nb", "...", ".. ", ". ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if validWindowsName(name) {
				t.Error("it is taken for a name")
			}
		})
	}
	for _, name := range []string{"a", "a~b", "~", "~a", ".git", "a.b.c", "資料", "a b"} {
		if !validWindowsName(name) {
			t.Errorf("%q is no name", name)
		}
	}
}

// TestHostileSpellings: a deny glob hides a name in each spelling that NTFS, APFS, HFS+ or ext4 treats as equal.
func TestHostileSpellings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ glob, path string }{
		"case":                       {"**/secret/**", "a/SECRET/b"},
		"case of the folder":         {".git/**", ".GIT/config"},
		"composed, decomposed":       {"**/caf\u00e9", "a/cafe\u0301"},
		"decomposed, composed":       {"**/cafe\u0301", "a/caf\u00e9"},
		"case and composition":       {"**/\u00e9t\u00e9", "E\u0301TE\u0301"},
		"kana with a mark":           {"**/がぎ", "か\u3099き\u3099"},
		"hangul in letters":          {"**/한글", "\u1112\u1161\u11ab\u1100\u1173\u11af"},
		"sharp s":                    {"**/strasse", "STRA\u00dfE"},
		"capital sharp s":            {"**/strasse", "STRA\u1e9eE"},
		"Kelvin":                     {"**/key", "\u212aey"},
		"Angstrom":                   {"**/\u00e5", "\u212b"},
		"long s":                     {"**/secret", "\u017fecret"},
		"ligature":                   {"**/file", "\ufb01le"},
		"final sigma":                {"**/\u03bf\u03c3", "\u039f\u03a3"},
		"sigma at the end":           {"**/\u03bf\u03c3", "\u03bf\u03c2"},
		"zero width":                 {"**/secret", "se\u200bcret"},
		"joiner":                     {".git", ".g\u200dit"},
		"soft hyphen":                {"**/secret", "sec\u00adret"},
		"byte order mark":            {"**/secret", "\ufeffsecret"},
		"variation selector":         {"**/secret", "secret\ufe0f"},
		"right to left":              {"**/secret", "se\u202ecret"},
		"order of marks":             {"**/q\u0307\u0323", "q\u0323\u0307"},
		"compatibility ideograph":    {"**/\u8c48", "\uf900"},
		"Ohm":                        {"**/\u03c9", "\u2126"},
		"dotted capital I":           {"**/i\u0307", "\u0130"},
		"micro":                      {"**/\u03bc", "\u00b5"},
		"titlecase digraph":          {"**/\u01c6", "\u01c5"},
		"Cherokee":                   {"**/\u13a0", "\uab70"},
		"Georgian":                   {"**/\u10d0", "\u1c90"},
		"outside of the basic plane": {"**/\U00010428", "\U00010400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, err := parseGlobs([]string{c.glob})
			if err != nil {
				t.Fatal(err)
			}
			if !g.match(c.path) {
				t.Errorf("%q is not hidden by %q", c.path, c.glob)
			}
		})
	}
	t.Run("every character with cases", func(t *testing.T) {
		t.Parallel()
		for r := rune(0); r <= unicode.MaxRune; r++ {
			if next := unicode.SimpleFold(r); next != r && fold(string(r)) != fold(string(next)) {
				t.Errorf("%U and %U are two names", r, next)
			}
		}
	})
}
