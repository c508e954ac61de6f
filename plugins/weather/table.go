package main

import "strings"

// table reads a table that is part of the program: a row a line, its fields separated by "|", and comments after "#".
func table[T any](text string, row func(fields []string) T) []T {
	var list []T
	for line := range strings.Lines(text) {
		if line[0] != '#' {
			list = append(list, row(strings.Split(strings.TrimSpace(line), "|")))
		}
	}
	return list
}
