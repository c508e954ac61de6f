package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/audit"
)

func (a *app) auditTailCommand() *cobra.Command {
	var filter auditFilter
	var follow bool
	var count int
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Show the newest records",
		Long:  `Show the newest records, and with -f those to come, also while hako serves. What the log records about itself is left out.`,
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if count < 0 {
				return usageError(cmd, fmt.Errorf("-n %d is no number of records", count))
			}
			return a.selected(cmd, &filter, func(place audit.Place, q *audit.Query) error {
				return a.tail(cmd, place, q, &filter, count, follow)
			})
		},
	}
	filter.add(cmd)
	filter.addShow(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with the records to come, until interrupted")
	cmd.Flags().IntVarP(&count, "lines", "n", 20, "how many records")
	return cmd
}

func (f *auditFilter) addShow(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print each record as it stands in the log, one a line")
	cmd.Flags().BoolVar(&f.utc, "utc", false, "show times in UTC instead of the local zone")
}

func (a *app) tail(cmd *cobra.Command, place audit.Place, q *audit.Query, f *auditFilter, count int,
	follow bool) error {
	q.OwnNotes = f.kind != ""
	end, err := place.Last(cmd.Context(), new(audit.Query{OwnNotes: true}), 1)
	if err != nil {
		return err
	}
	last, err := place.Last(cmd.Context(), q, count)
	if err != nil {
		return err
	}
	show := a.shower(f)
	for _, entry := range last {
		if err := show(entry); err != nil {
			return err
		}
	}
	if !follow {
		return nil
	}
	after := uint64(0)
	for _, entry := range slices.Concat(end, last) {
		after = max(after, entry.Seq)
	}
	for entry, err := range place.Follow(cmd.Context(), q, after) {
		if err == nil {
			err = show(entry)
		}
		if err != nil {
			return err
		}
	}
	return nil // interrupted, which is how it ends
}

func (a *app) auditQueryCommand() *cobra.Command {
	var filter auditFilter
	cmd := &cobra.Command{
		Use:   "query",
		Short: "Show the records that match, oldest first",
		Long: `Show the records that match, oldest first. All flags have to match. What the log records about itself is left out, unless --type names
it ("log/checkpoint").`,
		Example: `  hako audit query --since 24h --outcome not_allowed
  hako audit query --type operator --since 2026-01-01 --utc`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.selected(cmd, &filter, func(place audit.Place, q *audit.Query) error {
				q.OwnNotes = filter.kind != ""
				show := a.shower(&filter)
				for entry, err := range place.Read(cmd.Context(), q) {
					if err == nil {
						err = show(entry)
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
	filter.addShow(cmd)
	return cmd
}

// auditRow lines the columns of records up as far as they fit, without having seen them all.
const auditRow = "%-19s  %6s  %-24s  %-30s  %-12s  %9s  %s\n"

// shower shows entries one by one, under a heading.
func (a *app) shower(f *auditFilter) func(*audit.Entry) error {
	if f.asJSON {
		return func(e *audit.Entry) error { return e.Write(a.data(), audit.JSONL, "") }
	}
	zone, headed := time.Local, false
	if f.utc {
		zone = time.UTC
	}
	return func(e *audit.Entry) error {
		if !headed {
			headed = true
			printf(a.stdout, auditRow, "TIME ("+zoneName(e.Time.In(zone))+")", "RECORD", "WHO", "WHAT", "OUTCOME",
				"TOOK", "MORE")
		}
		var row strings.Builder
		printf(&row, auditRow, e.Time.In(zone).Format(time.DateTime), fmt.Sprint(e.Seq), who(e), what(e),
			cmp.Or(e.Outcome, "-"), took(e), more(e))
		return printf(a.stdout, "%s\n", strings.TrimRight(row.String(), " \n"))
	}
}

func zoneName(t time.Time) string {
	name, _ := t.Zone()
	return name
}

func who(e *audit.Entry) string {
	user := cmp.Or(e.Subject.User, e.Subject.Token, "-")
	if e.Subject.Tenant != "" {
		user += " of " + e.Subject.Tenant
	}
	if e.Subject.Frontend != "" {
		user += " (" + e.Subject.Frontend + ")"
	}
	return user
}

func what(e *audit.Entry) string {
	switch {
	case e.Action != "":
		return strings.TrimSpace(e.Action + " " + cmp.Or(e.Target.Plugin, e.Target.Name))
	case e.Target.Plugin != "":
		return e.Target.Plugin + "/" + e.Target.Name
	case e.Target.Name != "":
		return e.Target.Name
	}
	return string(e.Type)
}

func took(e *audit.Entry) string {
	if e.DurationMS == 0 {
		return ""
	}
	return time.Duration(e.DurationMS * float64(time.Millisecond)).Round(100 * time.Microsecond).String()
}

// more is what else there is to say: what decided, who agreed, what was found, what an operator did it with.
func more(e *audit.Entry) string {
	var parts []string
	if e.Decision != nil && e.Decision.Rule != "" {
		parts = append(parts, fmt.Sprintf("%s by rule %q", e.Decision.Action, e.Decision.Rule))
	}
	if e.Approval != nil {
		parts = append(parts, strings.TrimSpace("asked: "+e.Approval.Answer+" "+e.Approval.By))
	}
	for _, f := range e.Findings {
		parts = append(parts, fmt.Sprintf("secret in %s: %s (%s)", f.Place, f.Rule, f.Action))
	}
	for _, key := range slices.Sorted(maps.Keys(e.Detail)) {
		parts = append(parts, key+"="+e.Detail[key])
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(e.Arguments, &fields) == nil {
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			if key != "digest" {
				parts = append(parts, key+"="+string(fields[key]))
			}
		}
	}
	if e.Error != "" && e.Error != e.Outcome {
		parts = append(parts, e.Error)
	}
	return strings.Join(parts, "; ")
}
