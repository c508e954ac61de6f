package strictyaml

import (
	"strconv"
	"strings"

	"github.com/hako-run/hako/internal/lazyregexp"
)

var plainKey = lazyregexp.New(`^[A-Za-z0-9_$-]{1,100}$`)

// Key returns the path of key below path: "tools[0].name", or `config["a b"]` for a key that is no plain word.
func Key(path, key string) string {
	if !plainKey().MatchString(key) {
		return path + "[" + quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Index returns the path of element i of the list at path.
func Index(path string, i int) string {
	return path + "[" + strconv.Itoa(i) + "]"
}

// below reports whether path is outer or lies inside of it.
func below(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (outer == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}

// parent returns the path that path lies in.
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

// quote quotes text from a document for a message, shortened to a bearable length.
func quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60]) + "…"
	}
	return strconv.Quote(s)
}
