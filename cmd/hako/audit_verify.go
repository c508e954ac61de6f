package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/report"
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
						return report.Verification(out, v.Directory, v.Report, expectation.Seq)
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
