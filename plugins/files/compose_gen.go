//go:build ignore

// Command compose_gen writes compose.bin: for each character of the basic plane that Unicode composes of two others, these
// two and it, two bytes each with the low one first.
package main

import (
	"log"
	"os"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func main() {
	var table []byte
	for r := rune(0x80); r < 0x10000; r++ {
		parts := norm.NFD.String(string(r))
		if r >= 0xac00 && r <= 0xd7a3 || parts == string(r) || norm.NFC.String(string(r)) != string(r) {
			continue // Hangul is computed, and what NFC takes apart stays so
		}
		second, size := utf8.DecodeLastRuneInString(parts)
		first := []rune(norm.NFC.String(parts[:len(parts)-size]))
		if len(first) != 1 {
			log.Fatalf("%U is composed of %U and %U", r, first, second)
		}
		for _, c := range []rune{first[0], second, r} {
			table = append(table, byte(c), byte(c>>8))
		}
	}
	if err := os.WriteFile("compose.bin", table, 0o644); err != nil {
		log.Fatal(err)
	}
}
