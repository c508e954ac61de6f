package audit

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Expectation is what a log is held against besides itself.
type Expectation struct {
	// PublicKey is the key that must have signed the checkpoints. Nil means the one in the directory.
	PublicKey ed25519.PublicKey
	// Seq and Hash are a head noted at an earlier time, outside of the machine: the log must have that record. Zero means none.
	Seq  uint64
	Hash string
}

// Report is the outcome of Verify.
type Report struct {
	// Segments and Records count what was read; First and Last are the numbers of the first and last record.
	Segments, Records int
	First, Last       uint64
	// Head is the hash of the last record.
	Head string
	// Checkpoints counts signatures that are good. Signed is the last record that one of them covers.
	Checkpoints int
	Signed      uint64
	// PublicKey is the key that the signatures were held against.
	PublicKey ed25519.PublicKey
	// EndChecked says that the log's private key was there, with which alone the head can be told from a forged one. Without it, what
	// was cut off after the last checkpoint is found only by an Expectation.
	EndChecked bool
	// Problems are signs of a log that is not as it was written, in the order of the log. At most 100 are kept.
	Problems []Problem
}

// OK reports whether nothing was found.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// Problem is one sign that a log was changed.
type Problem struct {
	Segment string `json:"segment"`
	// Line counts from 1; 0 means the file as a whole. Seq is the record's number, if it has one.
	Line int    `json:"line,omitempty"`
	Seq  uint64 `json:"seq,omitempty"`
	Text string `json:"text"`
}

func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.Segment, p.Text)
	}
	return fmt.Sprintf("%s:%d: record %d: %s", p.Segment, p.Line, p.Seq, p.Text)
}

const maxProblems = 100

// Verify reads the whole log in dir and reports each sign that it is not as it was written. It may run while the log is written to.
// An error means that the log could not be read, not that it was changed.
func Verify(dir string, expect *Expectation) (*Report, error) {
	v := &verifier{dir: dir, report: new(Report)}
	if expect != nil {
		v.expect = *expect
	}
	if err := v.prepare(); err != nil {
		return nil, fmt.Errorf("verify the audit log %s: %w", dir, err)
	}
	for i, name := range v.names {
		if err := v.segment(name, i == len(v.names)-1); err != nil {
			return nil, fmt.Errorf("verify the audit log %s: %w", dir, err)
		}
	}
	v.finish()
	return v.report, nil
}

type verifier struct {
	dir    string
	names  []string
	expect Expectation
	head   *head // nil: none that can be trusted
	report *Report

	name     string // of the segment, its line
	lines    int
	chain    chain
	at       place // of the chain's last record
	unsigned int
	// missing is what stood before the first record; attested says that a record explains it.
	missing  chain
	attested bool
	headSeen bool
	expected bool
}

// prepare finds what there is to verify. The head is read first, so that records written meanwhile come after it.
func (v *verifier) prepare() error {
	if v.expect.PublicKey == nil {
		text, err := os.ReadFile(filepath.Join(v.dir, publicName))
		if err != nil {
			return err
		}
		if v.expect.PublicKey, err = ParsePublicKey(string(text)); err != nil {
			return err
		}
	}
	v.report.PublicKey = v.expect.PublicKey
	v.readHead()
	var err error
	if v.names, err = segments(v.dir); err == nil && len(v.names) == 0 {
		err = errors.New("there are no records")
	}
	return err
}

// readHead reads the head, if the key is there to tell whether it is genuine.
func (v *verifier) readHead() {
	v.name = headName
	k, err := openKey(v.dir, false)
	if err != nil {
		return // elsewhere than where it is written: signatures have to do
	}
	if !k.public.Equal(v.expect.PublicKey) {
		v.problem("the log's key is not the one expected")
		return
	}
	v.report.EndChecked = true
	h, err := readHead(v.dir, k)
	for range 3 { // it may have been read while it was written
		if err == nil {
			break
		}
		h, err = readHead(v.dir, k)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.problem("it is missing")
	case err != nil:
		v.problem("%v", err)
	default:
		v.head = &h
	}
}

func (v *verifier) problem(format string, args ...any) {
	v.problemAt(place{v.name, v.lines}, format, args...)
}

func (v *verifier) problemAt(at place, format string, args ...any) {
	if len(v.report.Problems) < maxProblems {
		v.report.Problems = append(v.report.Problems, Problem{at.segment, at.line, v.chain.seq, fmt.Sprintf(format, args...)})
	}
}

// place is a line of the log.
type place struct {
	segment string
	line    int
}

func (v *verifier) segment(name string, last bool) error {
	file, err := os.Open(filepath.Join(v.dir, name))
	if err != nil {
		return err
	}
	defer file.Close()
	if v.report.Segments > 0 && number(name) != number(v.name)+1 {
		v.lines = 0
		v.problem("the segments after this one are missing, up to %s", name)
	}
	v.name, v.lines = name, 0
	v.report.Segments++
	reader := bufio.NewReaderSize(file, maxRecord+1024)
	for {
		line, err := reader.ReadSlice('\n')
		switch {
		case err == io.EOF && len(line) == 0:
			if !last && v.chain.last != TypeRotated {
				v.problem("the segment ends here, without the record that ends one: its end was cut off")
			}
			return nil
		case err == io.EOF:
			v.lines++
			if !last {
				v.problem("the last record is cut off")
			}
			return nil // being written, or to be repaired at the next start
		case errors.Is(err, bufio.ErrBufferFull):
			v.problem("a line is longer than any record")
			return nil
		case err != nil:
			return err
		}
		v.lines++
		v.line(line)
	}
}

// line holds one record against the one before.
func (v *verifier) line(line []byte) {
	seq, prev, err := parseLine(line)
	if err != nil {
		v.problem("%v", err)
		return
	}
	switch {
	case v.report.Records == 0:
		v.begin(seq, prev)
	case seq != v.chain.seq+1:
		v.problem("record %d follows: records were removed, added or put in another order", seq)
	case prev != v.chain.head():
		v.problemAt(v.at, "it is not as it was written: record %d has another hash for it", seq)
	}
	v.report.Records++
	v.chain = chain{seq: seq, hash: hashOf(line)}
	v.at = place{v.name, v.lines}
	v.content(line, prev)
	v.compare()
}

// begin looks at the first record there is.
func (v *verifier) begin(seq uint64, prev string) {
	v.report.First = seq
	v.missing = chain{seq: seq - 1, hash: prev}
	v.attested = seq == 1 && prev == genesis
}

// content looks at the log's own records.
func (v *verifier) content(line []byte, prev string) {
	v.unsigned++
	if !bytes.Contains(line, []byte(`"type":"log/`)) {
		if !json.Valid(line) {
			v.problem("it is no JSON")
		}
		return
	}
	entry, err := parseEntry(line)
	if err != nil {
		v.problem("it is no record: %v", err)
		return
	}
	v.chain.last = entry.Type
	switch {
	case entry.Type == TypeCheckpoint && entry.Checkpoint != nil:
		v.checkpoint(entry, prev)
	case entry.Type == TypeRemoved && entry.Removed != nil:
		v.attested = v.attested || entry.Removed.Seq == v.missing.seq && entry.Removed.Hash == v.missing.hash
	case entry.Type == TypeGap && entry.Gap != nil && entry.Gap.Seq >= entry.Seq:
		v.problem("records up to %d were missing when the log was opened", entry.Gap.Seq)
	case entry.Type == TypeGap:
		v.problem("the end of the log was not the one of its head when the log was opened: what stands before may have been changed")
	}
}

func (v *verifier) checkpoint(entry *Entry, prev string) {
	if !ed25519.Verify(v.expect.PublicKey, signed(entry.Seq, prev, entry.Time), entry.Checkpoint.Signature) {
		v.problem("the signature of the checkpoint is not good")
		return
	}
	if v.unsigned > 2*checkpointEvery {
		v.problem("%d records before this checkpoint are without one: checkpoints were removed", v.unsigned-1)
	}
	v.unsigned = 0
	v.report.Checkpoints++
	v.report.Signed = entry.Seq - 1
}

// compare holds the record against the head and what was expected.
func (v *verifier) compare() {
	if v.head != nil && v.head.Seq == v.chain.seq {
		v.headSeen = true
		if v.head.Hash != v.chain.hash {
			v.problem("it is not the record that the head of the log names")
		}
	}
	if v.expect.Seq > 0 && v.expect.Seq == v.chain.seq {
		v.expected = true
		if v.expect.Hash != v.chain.hash {
			v.problem("it is not the record that was expected: the log is another one")
		}
	}
}

func (v *verifier) finish() {
	v.report.Last, v.report.Head = v.chain.seq, v.chain.hash
	v.lines = 0
	if !v.attested {
		v.problem("the log begins with record %d, and no record says what became of those before", v.report.First)
	}
	if v.head != nil && v.head.Seq > 0 && !v.headSeen {
		v.problem("record %d, the last one by the head of the log, is missing: the end was cut off", v.head.Seq)
	}
	if v.expect.Seq > 0 && !v.expected {
		v.problem("record %d, which was expected, is missing", v.expect.Seq)
	}
	if v.unsigned > 2*checkpointEvery {
		v.problem("the last %d records are without a checkpoint: checkpoints were removed", v.unsigned)
	}
}
