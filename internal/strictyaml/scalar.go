package strictyaml

import (
	"math"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/hako-run/hako/internal/lazyregexp"
)

// Ignore reads any value and does nothing with it.
func Ignore(Value) {}

// String reads a text that is not empty into dst.
func String(dst *string) func(Value) {
	return func(v Value) {
		s, ok := v.Text()
		if ok && s == "" {
			v.Problem("must not be empty: give a value or leave the key out")
		}
		*dst = s
	}
}

// List reads a list into dst, each item with read.
func List[T any](dst *[]T, read func(Value, *T)) func(Value) {
	return func(v Value) {
		v.List(func(_ int, item Value) {
			var t T
			read(item, &t)
			*dst = append(*dst, t)
		})
	}
}

// Strings reads a list of texts into dst.
func Strings(dst *[]string) func(Value) {
	return List(dst, func(v Value, s *string) { String(s)(v) })
}

// Bool reads true or false into dst.
func Bool(dst *bool) func(Value) {
	return func(v Value) {
		if v.node.Kind != yaml.ScalarNode || v.node.ShortTag() != "!!bool" {
			v.Problem("must be true or false, not %s", describe(v.node))
			return
		}
		*dst = v.node.Value[0] == 't' || v.node.Value[0] == 'T'
	}
}

// BoolPointer reads true or false into a new *dst.
func BoolPointer(dst **bool) func(Value) {
	return func(v Value) {
		*dst = new(bool)
		Bool(*dst)(v)
	}
}

// Count reads a whole number from 1 into dst.
func Count(dst *int) func(Value) {
	return func(v Value) {
		n, err := strconv.ParseInt(v.node.Value, 10, 32)
		if v.node.Kind != yaml.ScalarNode || v.node.ShortTag() != "!!int" || err != nil || n < 1 {
			v.Problem("must be a whole number from 1")
			return
		}
		*dst = int(n)
	}
}

// Duration reads a duration above zero, such as "30s" or "1m30s", into dst.
func Duration(dst *time.Duration) func(Value) {
	return func(v Value) {
		d, err := time.ParseDuration(v.node.Value)
		if v.node.Kind != yaml.ScalarNode || err != nil || d <= 0 {
			v.Problem(`must be a duration above zero with its unit, such as "500ms", "30s" or "1m30s"`)
			return
		}
		*dst = d
	}
}

var (
	size     = lazyregexp.New(`^([0-9]{1,18})(B|KiB|MiB|GiB|TiB)$`)
	sizeUnit = map[string]int64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
)

// Size reads a number of bytes above zero, such as "64MiB", into dst.
func Size(dst *int64) func(Value) {
	return func(v Value) {
		if n, ok := parseSize(v.node.Value); ok && v.node.Kind == yaml.ScalarNode {
			*dst = n
			return
		}
		v.Problem(`must be a size above zero with its unit, B, KiB, MiB, GiB or TiB, such as "64MiB"`)
	}
}

func parseSize(s string) (int64, bool) {
	m := size().FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if unit := sizeUnit[m[2]]; err == nil && n > 0 && n <= math.MaxInt64/unit {
		return n * unit, true
	}
	return 0, false
}

// FormatSize writes n bytes the way that Size reads them, in the largest unit that is exact.
func FormatSize(n int64) string {
	for _, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if n != 0 && n%sizeUnit[unit] == 0 {
			return strconv.FormatInt(n/sizeUnit[unit], 10) + unit
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}
