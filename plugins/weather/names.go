package main

import (
	_ "embed"
	"strings"
)

// names.txt has the names that people use and that JMA's table lacks; its head says how it is written.
//
//go:embed names.txt
var namesFile string

// nickname is one name of names.txt.
type nickname struct {
	name, kana, en string
	// targets are the places it stands for, as JMA names them after their prefecture.
	targets []string
	// city is the English name of the city whose ward it is, and "" for what is no ward.
	city string
}

var nicknames = readNames(namesFile)

// readNames reads the table of names, which is part of the program: a malformed line is a programming error.
func readNames(text string) []nickname {
	var list []nickname
	wards := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
			continue
		case line[0] == '[':
			wards = line == "[wards]"
			continue
		}
		left, right, _ := strings.Cut(line, " = ")
		city := ""
		if wards {
			left, city, _ = strings.Cut(left, " ")
		}
		for entry := range strings.SplitSeq(right, ", ") {
			words := strings.Fields(entry) // "-" is a name that it does not have
			for i, word := range words {
				words[i] = strings.ReplaceAll(strings.TrimPrefix(word, "-"), "_", " ")
			}
			list = append(list, nickname{words[0], words[1], words[2], strings.Split(left, "+"), city})
		}
	}
	return list
}
