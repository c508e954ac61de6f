package main

import (
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/govern/audit"
)

func (a *app) auditTailCommand() *cobra.Command {
	var filter auditFilter
	var follow bool
	var count int
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Show the newest records",
		Long: `Show the newest records, and with -f new ones as they are written, also while hako serves. What the log
records about itself is left out.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if count < 0 {
				return usageError(cmd, fmt.Errorf("-n %d is negative: use 0 or more", count))
			}
			return a.showRecords(cmd, &filter, func(place audit.Reader, q *audit.Query) iter.Seq2[*audit.Entry, error] {
				return audit.Tail(cmd.Context(), place, q, count, follow)
			})
		},
	}
	filter.add(cmd)
	a.showFlags(cmd, &filter)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "follow new records, until interrupted")
	cmd.Flags().IntVarP(&count, "lines", "n", 20, "how many records")
	return cmd
}

func (a *app) showFlags(cmd *cobra.Command, f *auditFilter) {
	cmd.Flags().BoolVar(&a.asJSON, "json", false, "print each record as it is in the log, one per line")
	cmd.Flags().BoolVar(&f.utc, "utc", false, "show times in UTC instead of the local zone")
}

func (a *app) auditQueryCommand() *cobra.Command {
	var filter auditFilter
	cmd := &cobra.Command{
		Use:   "query",
		Short: "Show the records that match, oldest first",
		Long: `Show the records that match, oldest first. All flags have to match. What the log records about itself is
left out, unless --type names it ("log/checkpoint").`,
		Example: `  hako audit query --since 24h --outcome not_allowed
  hako audit query --type operator --since 2026-01-01 --utc`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.showAll(cmd, &filter) },
	}
	filter.add(cmd)
	a.showFlags(cmd, &filter)
	return cmd
}

// showAll shows the records that match, oldest first.
func (a *app) showAll(cmd *cobra.Command, filter *auditFilter) error {
	return a.showRecords(cmd, filter, func(place audit.Reader, q *audit.Query) iter.Seq2[*audit.Entry, error] {
		return place.Read(cmd.Context(), q)
	})
}

// showRecords shows those of the records that match which read returns.
func (a *app) showRecords(cmd *cobra.Command, filter *auditFilter,
	read func(audit.Reader, *audit.Query) iter.Seq2[*audit.Entry, error]) error {
	return a.selected(cmd, filter, func(place audit.Reader, q *audit.Query) error {
		q.OwnNotes = q.Type != ""
		show := a.shower(filter)
		for entry, err := range read(place, q) {
			if err == nil {
				err = show(entry)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// shower shows entries one by one.
func (a *app) shower(f *auditFilter) func(*audit.Entry) error {
	switch {
	case a.asJSON:
		return func(e *audit.Entry) error { return e.Write(a.data(), audit.JSONL, "") }
	case f.utc:
		return auditPrinter(a.stdout, time.UTC)
	}
	return auditPrinter(a.stdout, time.Local)
}

// auditRow lines the columns of records up as far as they fit, without having seen them all.
const auditRow = "%-19s  %6s  %-24s  %-30s  %-12s  %9s  %s\n"

// auditPrinter returns a function that prints entries one by one, under a heading. At a terminal each takes one line;
// --json and the console show the rest.
func auditPrinter(out io.Writer, zone *time.Location) func(*audit.Entry) error {
	headed := false
	return func(e *audit.Entry) error {
		at := e.Time.In(zone)
		if !headed {
			headed = true
			name, _ := at.Zone()
			printf(out, auditRow, "TIME ("+name+")", "RECORD", "WHO", "WHAT", "OUTCOME", "TOOK", "MORE")
		}
		var row strings.Builder
		printf(&row, auditRow, at.Format(time.DateTime), fmt.Sprint(e.Seq), e.Who(), e.What(),
			dash(e.Outcome), e.Took(), e.More())
		return printf(out, "%s\n", terminal.Fit(out, strings.TrimRight(row.String(), " \n")))
	}
}
