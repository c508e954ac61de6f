package audit_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"regexp"
)

var chained = regexp.MustCompile(`^\{"seq":(\d+),"prev":"([0-9a-f]{64})",`)

// forge changes a record and gives all that follow a chain that fits, as somebody who knows the format would.
func forge(lines [][]byte) [][]byte {
	forged := [][]byte{bytes.Replace(lines[0], []byte(`"aki"`), []byte(`"eve"`), 1)}
	for _, line := range lines[1:] {
		seq := chained.FindSubmatch(line)[1]
		prev := sha256.Sum256(bytes.TrimSuffix(forged[len(forged)-1], []byte("\n")))
		forged = append(forged, chained.ReplaceAll(line, fmt.Appendf(nil, `{"seq":%s,"prev":"%x",`, seq, prev)))
	}
	return forged
}

// renumber takes a record out and closes the gap in the numbers.
func renumber(lines [][]byte) [][]byte {
	out := append([][]byte(nil), lines[:3]...)
	for _, line := range lines[4:] {
		m := chained.FindSubmatch(line)
		var seq int
		if _, err := fmt.Sscan(string(m[1]), &seq); err != nil {
			panic(err)
		}
		out = append(out, chained.ReplaceAll(line, fmt.Appendf(nil, `{"seq":%d,"prev":"%s",`, seq-1, m[2])))
	}
	return out
}
