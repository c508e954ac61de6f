package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/govern/audit"
)

func (a *app) auditVerifyCommand() *cobra.Command {
	var key, expect string
	cmd := &cobra.Command{
		Use:   "verify [DIR]",
		Short: "Verify that nobody has changed the audit log",
		Long: `Read the whole audit log, in DIR or where the configuration has it, and report every sign that a record
was edited, removed, added or reordered, or that the end was cut off. It needs no secret, and may run while
hako serves or on a copy elsewhere.

It prints the head of the log. Keep the head where writers of the log cannot change it. Passed to --expect later, it
proves that the log was not rolled back or restarted. Keep a copy of audit.pub there too, for --key.

Exit codes: 0 nothing was found, 1 the log was changed, 2 it cannot be read.`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			expectation, err := a.expectation(key, expect)
			if err != nil {
				return usageError(cmd, err)
			}
			return a.withAudit(cmd, strings.Join(args, ""), func(place audit.Reader) error {
				found, err := place.Verify(cmd.Context(), expectation)
				if err != nil {
					return err
				}
				err = show(a, &auditVerification{place.String(), found.OK(), found},
					func(out io.Writer, v *auditVerification) error {
						return printVerification(out, v.Directory, v.Report, expectation.Seq)
					})
				return failIf(!found.OK(), err)
			})
		},
	}
	cmd.Flags().StringVar(&key, "key", "",
		"a copy of audit.pub, the key that must have signed the log (default the one beside it)")
	cmd.Flags().StringVar(&expect, "expect", "", "NUMBER:HASH, a head that an earlier verification printed")
	return a.withJSON(cmd)
}

// auditVerification is the result of "hako audit verify" as JSON.
type auditVerification struct {
	Directory string `json:"directory"`
	OK        bool   `json:"ok"`
	*audit.Report
}

// expectation reads the flags --key and --expect.
func (a *app) expectation(key, expect string) (*audit.Expectation, error) {
	text := []byte(nil)
	if key != "" {
		var err error
		if text, err = os.ReadFile(a.path(key)); err != nil {
			return nil, fmt.Errorf("--key: %w", err)
		}
	}
	e, err := audit.ParseExpectation(string(text), expect)
	if err != nil {
		return nil, fmt.Errorf("--key or --expect: %w", err)
	}
	return e, nil
}

// printVerification prints the result of a verification of the audit log in dir. expected is the record of the head that
// the user gave, 0 if none.
func printVerification(out io.Writer, dir string, r *audit.Report, expected uint64) error {
	printf(out, "%s: %s in %s, from %d to %d\n", dir, terminal.Count(r.Records, "record"),
		terminal.Count(r.Segments, "segment"), r.First, r.Last)
	switch {
	case r.Checkpoints == 0:
		fmt.Fprintln(out, "No checkpoint is signed yet: anybody could forge a log of so few records")
	case r.Signed+1 >= r.Last:
		printf(out, "All are signed, with %s\n", r.PublicKey)
	default:
		printf(out, "Signed up to %d, with %s\n", r.Signed, r.PublicKey)
	}
	if !r.OK() {
		printf(out, "\nTHE LOG FAILED VERIFICATION:\n")
		for _, problem := range r.Problems {
			printf(out, "  %s\n", problem)
		}
		return nil
	}
	if r.EndChecked || expected == r.Last {
		return printf(out, "\nThe log is intact. Keep its head elsewhere, for the next verification:\n"+
			"  --expect %d:%s\n", r.Last, r.Head)
	}
	return printf(out, `
No sign of a change up to record %d. Whether later records are missing is not known: that takes the private key, which is not in this copy.
Verify where hako writes the log, or give a head that was noted there: --expect NUMBER:HASH. The head of this copy is %d:%s
`, r.Last, r.Last, r.Head)
}
