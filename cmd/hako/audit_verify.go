package main

import (
	"fmt"
	"os"
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
					err = a.printJSON(audit.NewVerification(place.String(), report))
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
		return printf(a.stdout, "\nThe log is as it was written. Keep its head elsewhere, for the next time:\n  --expect %d:%s\n",
			r.Last, r.Head)
	}
	return printf(a.stdout, `
No sign of a change up to record %d. Whether later records are missing is not known: that takes the private key, which is not in this copy.
Verify where hako writes the log, or give a head that was noted there: --expect NUMBER:HASH. The head of this copy is %d:%s
`, r.Last, r.Last, r.Head)
}
