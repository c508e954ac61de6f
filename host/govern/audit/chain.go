package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/hako-run/hako/internal/strictjson"
)

// chain is the end of a chain of records: number, hash and type of the last one. The zero value is the end of an empty
// chain.
type chain struct {
	seq  uint64
	hash string
	last Type
}

// genesis is the previous hash in the first record.
var genesis = strings.Repeat("0", 2*sha256.Size)

// line returns the next record: body, an event's JSON, after its number and the hash of the previous record.
func (c chain) line(body []byte) []byte {
	line := make([]byte, 0, len(body)+100)
	line = append(line, seqKey...)
	line = strconv.AppendUint(line, c.seq+1, 10)
	line = append(line, prevKey...)
	line = append(line, c.head()...)
	line = append(line, `",`...)
	line = append(line, body[1:]...)
	return append(line, '\n')
}

const (
	seqKey  = `{"seq":`
	prevKey = `,"prev":"`
)

// head returns the hash of the last record.
func (c chain) head() string {
	if c.seq == 0 {
		return genesis
	}
	return c.hash
}

// after returns the chain extended by line, a well-formed record with its newline.
func (c chain) after(line []byte) chain { return chain{seq: c.seq + 1, hash: hashOf(line)} }

// hashOf returns the hash of a record, without its newline.
func hashOf(line []byte) string {
	sum := sha256.Sum256(bytes.TrimSuffix(line, []byte("\n")))
	return hex.EncodeToString(sum[:])
}

// parseLine returns the number and the previous hash of a record. It accepts only the form that line writes, so that
// each record has one spelling.
func parseLine(line []byte) (seq uint64, prev string, err error) {
	rest, ok := bytes.CutPrefix(line, []byte(seqKey))
	digits, rest, found := bytes.Cut(rest, []byte(prevKey))
	if !ok || !found || len(rest) < len(genesis)+2 || string(rest[len(genesis):len(genesis)+2]) != `",` {
		return 0, "", fmt.Errorf("not a record of an audit log")
	}
	seq, err = strconv.ParseUint(string(digits), 10, 64)
	if err != nil || strconv.FormatUint(seq, 10) != string(digits) {
		return 0, "", fmt.Errorf("%.20q is not a record number", digits)
	}
	return seq, string(rest[:len(genesis)]), nil
}

// parseEntry decodes a record.
func parseEntry(line []byte) (*Entry, error) {
	entry := new(Entry)
	if err := strictjson.Unmarshal(line, entry); err != nil {
		return nil, err
	}
	return entry, nil
}
