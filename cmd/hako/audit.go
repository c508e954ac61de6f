package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/audit"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Read the audit log, and find out whether somebody has changed it",
		Args:  cobra.ArbitraryArgs,
		RunE:  group,
	}
	cmd.AddCommand(a.auditVerifyCommand(), a.auditTailCommand(), a.auditQueryCommand(), a.auditExportCommand())
	return cmd
}

// auditPath is the directory of the log: dir as given on the command line, or that of the configuration. There must be a log in it.
func (a *app) auditPath(cmd *cobra.Command, dir string) (string, error) {
	if dir != "" {
		dir = a.path(dir)
	} else {
		c, err := a.config(cmd)
		if err != nil {
			return "", err
		}
		dir = auditDir(c)
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no audit log in %s: hako serve and hako call begin one, unless audit.disabled is set", dir)
	}
	return dir, nil
}

// auditFilter are the flags that say which records to read.
type auditFilter struct {
	dir                          string
	since, until                 string
	tool, plugin, user, tenant   string
	outcome, kind, action, token string
	asJSON, utc                  bool
}

func (f *auditFilter) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.dir, "dir", "", "the directory of the log, such as a copy (default that of the configuration)")
	flags.StringVar(&f.since, "since", "", "from this time on: 2026-01-31, 2026-01-31T15:04:05+09:00, or how long ago, such as 24h")
	flags.StringVar(&f.until, "until", "", "before this time, in the same forms")
	flags.StringVar(&f.tool, "tool", "", "the tool, prompt or resource")
	flags.StringVar(&f.plugin, "plugin", "", "the plugin")
	flags.StringVar(&f.user, "user", "", "the user who asked")
	flags.StringVar(&f.tenant, "tenant", "", "the tenant on whose behalf")
	flags.StringVar(&f.token, "token", "", "the name of the token that the caller came with")
	flags.StringVar(&f.outcome, "outcome", "", "the outcome, such as ok or not_allowed")
	flags.StringVar(&f.kind, "type", "", "the type of record, such as tools/call or operator")
	flags.StringVar(&f.action, "action", "", "what an operator did, such as plugin.approve")
}

// query is what the flags ask for.
func (f *auditFilter) query(now time.Time) (*audit.Query, error) {
	q := &audit.Query{
		Type: audit.Type(f.kind), Outcome: f.outcome, Plugin: f.plugin, Name: f.tool, Tenant: f.tenant, User: f.user,
		Token: f.token, Action: f.action,
	}
	var err error
	if q.Since, err = parseMoment(f.since, now); err != nil {
		return nil, fmt.Errorf("--since %w", err)
	}
	if q.Until, err = parseMoment(f.until, now); err != nil {
		return nil, fmt.Errorf("--until %w", err)
	}
	return q, nil
}

// parseMoment reads a time, a day in the local zone, or how long before now it was.
func parseMoment(text string, now time.Time) (time.Time, error) {
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
	return time.Time{}, fmt.Errorf("%q is no time such as 2026-01-31, 2026-01-31T15:04:05+09:00 or 24h (ago)", text)
}

// selection is the directory and the query of a command.
func (a *app) selection(cmd *cobra.Command, f *auditFilter) (string, *audit.Query, error) {
	q, err := f.query(time.Now())
	if err != nil {
		return "", nil, usageError(cmd, err)
	}
	dir, err := a.auditPath(cmd, f.dir)
	return dir, q, err
}

func (a *app) auditExportCommand() *cobra.Command {
	var filter auditFilter
	var format string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write records in a form that other systems take",
		Long: `Write records to standard output, one a line, oldest first: as they stand in the log (jsonl), or for a SIEM as OCSF 1.3, class API
Activity, or as CEF. It may run while hako serves.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, q, err := a.selection(cmd, &filter)
			if err != nil {
				return err
			}
			q.OwnNotes = true
			for entry, err := range audit.Read(dir, q) {
				if err == nil {
					err = entry.Write(a.stdout, audit.Format(format), thisBuild().Version)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	filter.add(cmd)
	cmd.Flags().StringVar(&format, "format", string(audit.JSONL), "jsonl, ocsf or cef")
	return cmd
}
