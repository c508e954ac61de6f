package policytry

import (
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"
)

// reasonTexts explains why calls cannot be decided again, in the order in which they are printed.
var reasonTexts = []struct{ reason, text string }{
	{Arguments, "a rule needs arguments, of which the log has a digest (audit.fields records some)"},
	{Employee, "a rule needs the employee, by an address that the log does not have"},
	{Tool, "a rule needs hints of a tool that is not in the catalog now"},
	{Older, "an earlier version wrote the record, without token, groups and scopes"},
}

// Print writes the result in English. file is the file with the policy that was tried.
func (r *Result) Print(w io.Writer, file string) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "Of %d calls since %s, %d would be decided otherwise, %d the same", r.Calls,
		r.Since.Local().Format(time.DateTime), r.Changed, r.Same)
	if r.OtherRule > 0 {
		fmt.Fprintf(out, " (%d by another rule)", r.OtherRule)
	}
	fmt.Fprintf(out, ", and %d cannot be decided again.\n", r.Undecidable)
	if r.Cut {
		fmt.Fprintf(out, "The log has more calls than one trial takes: those after %s were not looked at.\n",
			r.Until.Local().Format(time.DateTime))
	}
	for _, known := range reasonTexts {
		if n := r.Reasons[known.reason]; n > 0 {
			fmt.Fprintf(out, "Not decided again: %d, because %s.\n", n, known.text)
		}
	}
	if len(r.Changes) > 0 {
		fmt.Fprint(out, "\nCALLS\tTOOL\tCALLER\tWAS\tWOULD BE\tLAST RECORD\n")
	}
	for _, c := range r.Changes {
		to := c.To.String()
		if c.To.Line > 0 {
			to += fmt.Sprintf(" (%s:%d)", filepath.Base(file), c.To.Line)
		}
		fmt.Fprintf(out, "%d\t%s\t%s\t%s\t%s\t%d\n", c.Calls, c.Tool, c.Caller, c.From, to, c.Seq)
	}
	if r.Omitted > 0 {
		fmt.Fprintf(out, "%d more calls would be decided otherwise\n", r.Omitted)
	}
	return out.Flush()
}
