// Package lang decides whether a language tag means Japanese. hako has texts in Japanese and English.
package lang

import "strings"

// Japanese reports whether a BCP 47 tag such as "ja-JP" stands for Japanese. Everybody else reads English.
func Japanese(tag string) bool { return strings.HasPrefix(strings.ToLower(tag), "ja") }
