//go:build ignore

// Command jis0208_gen writes jis0208.bin: the code points of the WHATWG index jis0208 by pointer, two bytes each with
// the low one first, zero where there is none.
package main

import (
	"log"
	"os"

	"golang.org/x/text/encoding/japanese"
)

func main() {
	table := make([]byte, 0, 2*94*120)
	for pointer := range 94 * 120 {
		r := decode(pointer)
		table = append(table, byte(r), byte(r>>8))
	}
	if err := os.WriteFile("jis0208.bin", table, 0o644); err != nil {
		log.Fatal(err)
	}
}

// decode returns the code point of a pointer, by way of its two bytes in Shift_JIS.
func decode(pointer int) rune {
	lead, trail := pointer/188+0x81, pointer%188+0x40
	if lead >= 0xa0 {
		lead += 0x40
	}
	if trail >= 0x7f {
		trail++
	}
	text, err := japanese.ShiftJIS.NewDecoder().Bytes([]byte{byte(lead), byte(trail)})
	r := []rune(string(text))
	if err != nil || len(r) != 1 || r[0] == '\ufffd' || r[0] >= 0xe000 && r[0] <= 0xf8ff {
		return 0
	}
	return r[0]
}
