package audit

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseExpectation parses what to compare a log with: a public key in the format of audit.pub, and a head as
// NUMBER:HASH. Each may be empty.
func ParseExpectation(key, head string) (*Expectation, error) {
	e := new(Expectation)
	var err error
	if key != "" {
		if e.PublicKey, err = parsePublicKey(key); err != nil {
			return nil, err
		}
	}
	if head == "" {
		return e, nil
	}
	number, hash, _ := strings.Cut(head, ":")
	sum, bad := hex.DecodeString(hash)
	if e.Seq, err = strconv.ParseUint(number, 10, 64); err != nil || e.Seq == 0 || bad != nil || len(sum) != 32 {
		return nil, errors.New("a head is NUMBER:HASH, as hako audit verify prints it")
	}
	e.Hash = strings.ToLower(hash)
	return e, nil
}

// Verification is a Report as JSON.
type Verification struct {
	Directory   string    `json:"directory"`
	OK          bool      `json:"ok"`
	Segments    int       `json:"segments"`
	Records     int       `json:"records"`
	First       uint64    `json:"first"`
	Last        uint64    `json:"last"`
	Head        string    `json:"head"`
	Checkpoints int       `json:"checkpoints"`
	Signed      uint64    `json:"signed"`
	PublicKey   string    `json:"publicKey"`
	EndChecked  bool      `json:"endChecked"`
	Problems    []Problem `json:"problems"`
}

// NewVerification returns the report about the log in dir.
func NewVerification(dir string, r *Report) *Verification {
	return &Verification{
		dir, r.OK(), r.Segments, r.Records, r.First, r.Last, r.Head, r.Checkpoints, r.Signed,
		FormatPublicKey(r.PublicKey),
		r.EndChecked, append([]Problem{}, r.Problems...),
	}
}

// ParseTime parses a time, a day in the local zone, or a duration before now, as people write them in queries. Empty
// text is the zero time.
func ParseTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly, time.DateTime, "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time: write it like 2026-01-31, 2026-01-31T15:04:05+09:00 or 24h (ago)",
		text)
}
