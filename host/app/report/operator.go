package report

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hako-run/hako/host/app/backup"
	"github.com/hako-run/hako/host/app/doctor"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/frontend/agent"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy/policytest"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/pdk/locale"
)

// Approvals prints the questions that wait.
func Approvals(out io.Writer, list []*approval.Question) error {
	return printTable(out, "ID\tTOOL\tASKED BY\tRULE\tTIME LEFT", list, func(q *approval.Question) []any {
		return []any{q.ID, q.Tool, fmt.Sprintf("%s (%s)", dash(q.Caller.User), q.Caller.Frontend), q.Rule,
			terminal.TimeLeft(q)}
	})
}

// Feedback prints people's ratings of answers, and the questions and answers where an entry has them.
func Feedback(out io.Writer, list []inspect.FeedbackEntry) error {
	var rows [][]any
	for _, e := range list {
		rows = append(rows, []any{e.Time.Local().Format(time.DateTime), e.Rating, e.Tenant,
			fmt.Sprintf("%s (%s)", e.User, e.Frontend), e.Conversation, e.Answer})
		if e.Question+e.Text != "" {
			rows = append(rows, []any{"", "asked: " + strings.Join(strings.Fields(e.Question), " ")},
				[]any{"", "answered: " + strings.Join(strings.Fields(e.Text), " ")})
		}
	}
	const heading = "TIME\tRATING\tTENANT\tWHO\tCONVERSATION\tANSWER"
	return printTable(out, heading, rows, func(row []any) []any { return row })
}

// AgentPlan prints what would change in an agent.
func AgentPlan(out io.Writer, p *agent.Plan) {
	terminal.Printf(out, "Agent %s (%s), version %d\n", p.Agent, p.Name, p.Version)
	for _, c := range p.Changes {
		terminal.Printf(out, "  %s\n", c.Text())
		if c.New != nil && (c.Old == nil || c.Old.Description != c.New.Description) {
			terminal.Printf(out, "      %s\n", terminal.Summary(c.New.Description))
		}
	}
	switch {
	case p.Empty():
		fmt.Fprintln(out, "  has the tools as they are")
	case len(p.Changes) == 0:
		fmt.Fprintln(out, "  has the tools as they are; hako notes in its metadata that they are its own")
	}
	if len(p.Kept) > 0 {
		terminal.Printf(out, "  stays as it is: %s\n", strings.Join(p.Kept, ", "))
	}
}

// Databases prints the files of a backup: each database, and the audit log as one.
func Databases(out io.Writer, done string, files []backup.File, dir string) error {
	var total, log int64
	databases := 0
	for _, file := range files {
		total += file.Bytes
		if file.Audit() {
			log += file.Bytes
			continue
		}
		databases++
		terminal.Printf(out, "%-40s %10s\n", file.Title(), strictyaml.FormatSize(file.Bytes))
	}
	if databases < len(files) {
		terminal.Printf(out, "%-40s %10s\n", "audit log", strictyaml.FormatSize(log))
	}
	return terminal.Printf(out, "%s %s, %s: %s\n", done, terminal.Count(databases, "database"),
		strictyaml.FormatSize(total), dir)
}

// Verification prints the result of a verification of the audit log in dir. expected is the record of the head that the
// user gave, 0 if none.
func Verification(out io.Writer, dir string, r *audit.Report, expected uint64) error {
	terminal.Printf(out, "%s: %s in %s, from %d to %d\n", dir, terminal.Count(r.Records, "record"),
		terminal.Count(r.Segments, "segment"), r.First, r.Last)
	switch {
	case r.Checkpoints == 0:
		fmt.Fprintln(out, "No checkpoint is signed yet: anybody could forge a log of so few records")
	case r.Signed+1 >= r.Last:
		terminal.Printf(out, "All are signed, with %s\n", r.PublicKey)
	default:
		terminal.Printf(out, "Signed up to %d, with %s\n", r.Signed, r.PublicKey)
	}
	if !r.OK() {
		terminal.Printf(out, "\nTHE LOG FAILED VERIFICATION:\n")
		for _, problem := range r.Problems {
			terminal.Printf(out, "  %s\n", problem)
		}
		return nil
	}
	if r.EndChecked || expected == r.Last {
		return terminal.Printf(out, "\nThe log is intact. Keep its head elsewhere, for the next verification:\n"+
			"  --expect %d:%s\n", r.Last, r.Head)
	}
	return terminal.Printf(out, `
No sign of a change up to record %d. Whether later records are missing is not known: that takes the private key, which is not in this copy.
Verify where hako writes the log, or give a head that was noted there: --expect NUMBER:HASH. The head of this copy is %d:%s
`, r.Last, r.Last, r.Head)
}

// Said returns the text of err in a language, a BCP 47 tag, as an error.
func Said(err error, language string) error { return errors.New(locale.In(err, language)) }

// Problems prints each problem of a file on a line with its place, as editors understand it. kind is error or warning,
// language a BCP 47 tag.
func Problems(out io.Writer, path, kind, language string, err error) {
	var list *strictyaml.Error
	if !errors.As(err, &list) {
		if err != nil {
			terminal.Printf(out, "%s: %s: %v\n", path, kind, err)
		}
		return
	}
	for _, problem := range list.Lines(path, kind, language) {
		terminal.Printf(out, "%s\n", problem)
	}
}

// Findings prints what hako doctor found, each with its remedy.
func Findings(out io.Writer, list []doctor.Finding) error {
	var errs []error
	for _, f := range list {
		errs = append(errs, terminal.Printf(out, "%-8s %s: %s\n", f.Level, f.Check, f.Message))
		if f.Remedy != "" {
			errs = append(errs, terminal.Printf(out, "%-8s -> %s\n", "", f.Remedy))
		}
	}
	return errors.Join(errs...)
}

// Cases prints the cases of a policy that failed, and the number of all.
func Cases(out io.Writer, cases *policytest.Cases, failures []policytest.Failure) error {
	for _, f := range failures {
		_ = terminal.Printf(out, "--- %s (%s:%d)\n-%s\n+%s\n", f.Name, cases.Path, f.Line, f.Want, f.Got)
		if f.Why != "" {
			_ = terminal.Printf(out, " %s\n", f.Why)
		}
	}
	if len(failures) > 0 {
		return terminal.Printf(out, "%d of %s failed\n", len(failures), terminal.Count(cases.Len(), "case"))
	}
	return terminal.Printf(out, "%s passed\n", terminal.Count(cases.Len(), "case"))
}

// Review prints what the review of a plugin file found, or why there was none, and reports whether it is free of
// errors.
func Review(out io.Writer, file string, findings []manifest.Finding, err error) bool {
	if err != nil {
		findings = []manifest.Finding{{Severity: manifest.SeverityError, Message: err.Error()}}
	}
	ok := true
	for _, finding := range findings {
		ok = ok && finding.Severity != manifest.SeverityError
		for line := range strings.SplitSeq(finding.String(), "\n") {
			_ = terminal.Printf(out, "%s: %s\n", file, line)
		}
	}
	if len(findings) == 0 {
		_ = terminal.Printf(out, "%s: no problems found\n", file)
	}
	return ok
}
