package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/govern/audit"
)

func (a *app) auditCommand() *cobra.Command {
	return groupCommand("audit", "Read and verify the audit log",
		a.auditVerifyCommand(), a.auditTailCommand(), a.auditQueryCommand(), a.auditExportCommand())
}

// auditFilter are the flags that say which records to read, where and how to show them.
type auditFilter struct {
	audit.Query
	dir, since, until string
	utc               bool
}

func (f *auditFilter) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.dir, "dir", "", "the directory of the log, such as a copy (default that of the configuration)")
	flags.StringVar(&f.since, "since", "",
		"from this time on: 2026-01-31, 2026-01-31T15:04:05+09:00, or how long ago, such as 24h")
	flags.StringVar(&f.until, "until", "", "before this time, in the same forms")
	flags.StringVar(&f.Name, "tool", "", "the tool, prompt or resource")
	flags.StringVar(&f.Plugin, "plugin", "", "the plugin")
	flags.StringVar(&f.User, "user", "", "the user who asked")
	flags.StringVar(&f.Tenant, "tenant", "", "the tenant on whose behalf")
	flags.StringVar(&f.Token, "token", "", "the name of the caller's token")
	flags.StringVar(&f.Outcome, "outcome", "", "the outcome, such as ok or not_allowed")
	flags.StringVar(&f.ID, "id", "", "the ID of a call, an HTTP request (X-Request-Id), a trace or a question")
	flags.StringVar((*string)(&f.Type), "type", "", "the type of record, such as tools/call or operator")
	flags.StringVar(&f.Action, "action", "", "what an operator did, such as plugin.approve")
}

// parseTimes puts the times of the flags into the query.
func (f *auditFilter) parseTimes(now time.Time) (err error) {
	if f.Since, err = audit.ParseTime(f.since, now); err != nil {
		return fmt.Errorf("--since %w", err)
	}
	if f.Until, err = audit.ParseTime(f.until, now); err != nil {
		return fmt.Errorf("--until %w", err)
	}
	return nil
}

// selected calls do with the log and the query of a command.
func (a *app) selected(cmd *cobra.Command, f *auditFilter, do func(audit.Reader, *audit.Query) error) error {
	if err := f.parseTimes(time.Now()); err != nil {
		return usageError(cmd, err)
	}
	return a.withAudit(cmd, f.dir, func(place audit.Reader) error { return do(place, &f.Query) })
}

func (a *app) auditExportCommand() *cobra.Command {
	var filter auditFilter
	var format string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Export records in the formats of other systems",
		Long: `Write records to standard output, one per line, oldest first: as they are in the log (jsonl), or for a
SIEM as OCSF 1.3, class API Activity, or as CEF. It may run while hako serves.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.selected(cmd, &filter, func(place audit.Reader, q *audit.Query) error {
				q.OwnNotes = true
				for entry, err := range place.Read(cmd.Context(), q) {
					if err == nil {
						err = entry.Write(a.data(), audit.Format(format), thisBuild().Version)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	filter.add(cmd)
	cmd.Flags().StringVar(&format, "format", string(audit.JSONL), "jsonl, ocsf or cef")
	return cmd
}
