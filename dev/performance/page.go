package main

import (
	"fmt"
	"io"
	"strings"
)

// marker begins the section of the page that a target of the Makefile makes.
func marker(target string) string { return fmt.Sprintf("<!-- made by make %s -->\n", target) }

// replaceSection writes a section of the page anew and leaves the others as they are. A section that the page does not
// have yet becomes its last.
func replaceSection(page, target string, render func(io.Writer) error) (string, error) {
	var section strings.Builder
	section.WriteString(marker(target))
	if err := render(&section); err != nil {
		return "", err
	}
	before, rest, found := strings.Cut(page, marker(target))
	if !found && page != "" {
		before = strings.TrimRight(page, "\n") + "\n\n"
	}
	after := ""
	if i := strings.Index(rest, "<!-- made by "); i >= 0 {
		section.WriteString("\n")
		after = rest[i:]
	}
	return before + section.String() + after, nil
}
