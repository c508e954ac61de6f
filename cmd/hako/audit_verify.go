package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/audit"
)

func (a *app) auditVerifyCommand() *cobra.Command {
	var key, expect string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [DIR]",
		Short: "Find out whether somebody has changed the audit log",
		Long: `Read the whole audit log, in DIR or where the configuration has it, and report every sign that a record was edited, removed, added or put
in another order, or that an end was cut off. It needs no secret, and may run while hako serves or on a copy elsewhere.

It prints the head of the log. Keep that where nobody who can write to the log can: given to --expect later, it shows that the log was not
put back or begun anew. Keep a copy of audit.pub there too, for --key.

Exit codes: 0 nothing was found, 1 the log was changed, 2 it cannot be read.`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			expectation, err := a.expectation(key, expect)
			if err != nil {
				return usageError(cmd, err)
			}
			return a.withAudit(cmd, strings.Join(args, ""), func(place audit.Place) error {
				report, err := place.Verify(cmd.Context(), expectation)
				if err != nil {
					return err
				}
				if asJSON {
					err = a.printJSON(newVerification(place.String(), report))
				} else {
					err = a.printReport(place.String(), report, expectation.Seq)
				}
				if err == nil && !report.OK() {
					err = &exitError{code: exitFailed}
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&key, "key", "",
		"a copy of audit.pub, the key that must have signed the log (default the one beside it)")
	cmd.Flags().StringVar(&expect, "expect", "", "NUMBER:HASH, a head that an earlier verification printed")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// expectation is what the flags hold the log against.
func (a *app) expectation(key, expect string) (*audit.Expectation, error) {
	e := new(audit.Expectation)
	if key != "" {
		text, err := os.ReadFile(a.path(key))
		if err != nil {
			return nil, fmt.Errorf("--key: %w", err)
		}
		if e.PublicKey, err = audit.ParsePublicKey(string(text)); err != nil {
			return nil, fmt.Errorf("--key %s: %w", key, err)
		}
	}
	if expect == "" {
		return e, nil
	}
	number, hash, _ := strings.Cut(expect, ":")
	var err error
	sum, bad := hex.DecodeString(hash)
	if e.Seq, err = strconv.ParseUint(number, 10, 64); err != nil || e.Seq == 0 || bad != nil || len(sum) != 32 {
		return nil, errors.New("--expect is NUMBER:HASH, as hako audit verify prints it")
	}
	e.Hash = strings.ToLower(hash)
	return e, nil
}

// verification is a report as JSON.
type verification struct {
	Directory   string          `json:"directory"`
	OK          bool            `json:"ok"`
	Segments    int             `json:"segments"`
	Records     int             `json:"records"`
	First       uint64          `json:"first"`
	Last        uint64          `json:"last"`
	Head        string          `json:"head"`
	Checkpoints int             `json:"checkpoints"`
	Signed      uint64          `json:"signed"`
	PublicKey   string          `json:"publicKey"`
	EndChecked  bool            `json:"endChecked"`
	Problems    []audit.Problem `json:"problems"`
}

func newVerification(dir string, r *audit.Report) *verification {
	return &verification{
		dir, r.OK(), r.Segments, r.Records, r.First, r.Last, r.Head, r.Checkpoints, r.Signed,
		audit.FormatPublicKey(r.PublicKey),
		r.EndChecked, append([]audit.Problem{}, r.Problems...),
	}
}

// printReport prints what was found. expected is the head that --expect named, 0 if none.
func (a *app) printReport(dir string, r *audit.Report, expected uint64) error {
	printf(a.stdout, "%s: %d records in %d segments, from %d to %d\n", dir, r.Records, r.Segments, r.First, r.Last)
	switch {
	case r.Checkpoints == 0:
		fmt.Fprintln(a.stdout, "No checkpoint is signed yet: a log of so few records could be made anew by anybody")
	case r.Signed+1 >= r.Last:
		printf(a.stdout, "All are signed, with %s\n", audit.FormatPublicKey(r.PublicKey))
	default:
		printf(a.stdout, "Signed up to %d, with %s\n", r.Signed, audit.FormatPublicKey(r.PublicKey))
	}
	if !r.OK() {
		printf(a.stdout, "\nTHE LOG IS NOT AS IT WAS WRITTEN:\n")
		for _, problem := range r.Problems {
			printf(a.stdout, "  %s\n", problem)
		}
		return nil
	}
	if r.EndChecked || expected == r.Last {
		return printf(a.stdout, "\nThe log is as it was written. Keep its head elsewhere, for the next time:\n  --expect %d:%s\n", r.Last, r.Head)
	}
	return printf(a.stdout, `
No sign of a change up to record %d. Whether later records are missing is not known: that takes the private key, which is not in this copy.
Verify where hako writes the log, or give a head that was noted there: --expect NUMBER:HASH. The head of this copy is %d:%s
`, r.Last, r.Last, r.Head)
}
