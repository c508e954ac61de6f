package llm

import "regexp"

func pattern(text string) *regexp.Regexp { return regexp.MustCompile(text) }
