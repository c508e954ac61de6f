package audit

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
)

// Expectation holds what is known about a log from elsewhere, for Verify to compare it with.
type Expectation struct {
	// PublicKey is the key of the checkpoints. Nil means the one in the directory.
	PublicKey ed25519.PublicKey
	// Seq and Hash are a head that was noted outside of the machine. The log must contain that record. Zero means none.
	Seq  uint64
	Hash string
}

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
