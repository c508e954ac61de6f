package audit

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
)

// Report is the result of Verify.
type Report struct {
	// Segments and Records count what was read. First and Last are the numbers of the first and the last record.
	Segments int    `json:"segments"`
	Records  int    `json:"records"`
	First    uint64 `json:"first"`
	Last     uint64 `json:"last"`
	// Head is the hash of the last record.
	Head string `json:"head"`
	// Checkpoints counts valid signatures. Signed is the last record that one of them covers.
	Checkpoints int    `json:"checkpoints"`
	Signed      uint64 `json:"signed"`
	// PublicKey is the key with which signatures were verified, in the form of audit.pub.
	PublicKey string `json:"publicKey"`
	// EndChecked reports whether the private key was available to authenticate the head. Without it, only an
	// Expectation detects that records after the last checkpoint were cut off.
	EndChecked bool `json:"endChecked"`
	// Problems are signs of changes, in the order of the log. At most 100 are kept.
	Problems []Problem `json:"problems"`
}

// OK reports whether there are no problems.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// Problem is one sign of a change.
type Problem struct {
	Segment string `json:"segment"`
	// Line counts from 1; 0 means the whole file. Seq is the record's number, if known.
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

// verifier checks the records of a log one by one.
type verifier struct {
	expect Expectation
	head   *head // nil if it cannot be trusted
	report *Report

	name     string // the segment or table, and the line in it
	lines    int
	chain    chain
	at       position // the position of the chain's last record
	unsigned int
	// missing is the end of the chain before the first record. attested reports whether a record explains why earlier
	// records are gone.
	missing  chain
	attested bool
	headSeen bool
	expected bool
}

func newVerifier(expect *Expectation) *verifier {
	v := &verifier{report: &Report{Problems: []Problem{}}}
	if expect != nil {
		v.expect = *expect
	}
	return v
}

func (v *verifier) problem(format string, args ...any) {
	v.problemAt(position{v.name, v.lines}, format, args...)
}

func (v *verifier) problemAt(at position, format string, args ...any) {
	if len(v.report.Problems) < maxProblems {
		v.report.Problems = append(v.report.Problems, Problem{at.segment, at.line, v.chain.seq,
			fmt.Sprintf(format, args...)})
	}
}

// position is a line of the log.
type position struct {
	segment string
	line    int
}

// line checks one record against the previous one.
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
		v.problem("record %d follows: records were removed, added or reordered", seq)
	case prev != v.chain.head():
		v.problemAt(v.at, "it was changed: record %d has a different hash for it", seq)
	}
	v.report.Records++
	v.chain = chain{seq: seq, hash: hashOf(line)}
	v.at = position{v.name, v.lines}
	v.content(line, prev)
	v.compare()
}

// begin checks the first record.
func (v *verifier) begin(seq uint64, prev string) {
	v.report.First = seq
	v.missing = chain{seq: seq - 1, hash: prev}
	v.attested = seq == 1 && prev == genesis
}

// content checks the log's own records.
func (v *verifier) content(line []byte, prev string) {
	v.unsigned++
	if !bytes.Contains(line, []byte(`"type":"log/`)) {
		if !json.Valid(line) {
			v.problem("it is not JSON")
		}
		return
	}
	entry, err := parseEntry(line)
	if err != nil {
		v.problem("it is not a valid record: %v", err)
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
		v.problem("the signature of the checkpoint is invalid")
		return
	}
	if v.unsigned > 2*checkpointEvery {
		v.problem("%d records before this checkpoint are without one: checkpoints were removed", v.unsigned-1)
	}
	v.unsigned = 0
	v.report.Checkpoints++
	v.report.Signed = entry.Seq - 1
}

// compare compares the record with the head and the Expectation.
func (v *verifier) compare() {
	if v.head != nil && v.head.Seq == v.chain.seq {
		v.headSeen = true
		if v.head.Hash != v.chain.hash {
			v.problem("it differs from the record that the head of the log names")
		}
	}
	if v.expect.Seq > 0 && v.expect.Seq == v.chain.seq {
		v.expected = true
		if v.expect.Hash != v.chain.hash {
			v.problem("it differs from the expected record: this is another log")
		}
	}
}

func (v *verifier) finish() {
	v.report.Last, v.report.Head = v.chain.seq, v.chain.hash
	v.lines = 0
	if !v.attested {
		v.problem("the log begins with record %d, and no record says that the earlier ones were removed",
			v.report.First)
	}
	if v.head != nil && v.head.Seq > 0 && !v.headSeen {
		v.problem("record %d, the last one according to the head of the log, is missing: the end was cut off",
			v.head.Seq)
	}
	if v.expect.Seq > 0 && !v.expected {
		v.problem("record %d, which was expected, is missing", v.expect.Seq)
	}
	if v.unsigned > 2*checkpointEvery {
		v.problem("the last %d records are without a checkpoint: checkpoints were removed", v.unsigned)
	}
}
