package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/frontend/terminal"
)

// block is an argument of printf that may have several lines.
type block = terminal.Block

// printf prints for people; see terminal.Printf.
func printf(out io.Writer, format string, args ...any) error {
	return terminal.Printf(out, format, args...)
}

// withJSON adds the flag --json to a command, which prints with show or showList.
func (a *app) withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.asJSON, "json", false, "print JSON")
	return cmd
}

// show prints a value: with --json as JSON, otherwise with text.
func show[T any](a *app, value T, text func(io.Writer, T) error) error {
	if a.asJSON {
		return a.printJSON(value)
	}
	return text(a.stdout, value)
}

// showList is show for a list. If it is empty, none is printed to standard error instead of text.
func showList[T any](a *app, list []T, none string, text func(io.Writer, []T) error) error {
	switch {
	case a.asJSON:
		return a.printJSON(append([]T{}, list...))
	case len(list) == 0:
		return printf(a.stderr, "%s\n", none)
	}
	return text(a.stdout, list)
}

// printJSON writes v to standard output.
func (a *app) printJSON(v any) error {
	encoder := json.NewEncoder(a.data())
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// data returns the stream for results and records that another program may read. At a terminal it is the screen;
// elsewhere they are written byte for byte.
func (a *app) data() io.Writer {
	if a.pipe == nil || terminal.IsTerminal(a.stdout) {
		return a.stdout
	}
	return a.pipe
}

// printTable prints rows under a heading, whose columns are separated by tabs.
func printTable[T any](out io.Writer, heading string, rows []T, columns func(T) []any) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if heading != "" {
		fmt.Fprintln(table, heading)
	}
	for _, row := range rows {
		values := columns(row)
		printf(table, strings.TrimSuffix(strings.Repeat("%v\t", len(values)), "\t")+"\n", values...)
	}
	return table.Flush()
}

// printWide is printTable for rows of any length. At a terminal it has the heading, and each row takes one line; for other
// programs the rows are whole, without a heading.
func printWide[T any](out io.Writer, heading string, rows []T, columns func(T) []any) error {
	if !terminal.IsTerminal(out) {
		return printTable(out, "", rows, columns)
	}
	if len(rows) == 0 {
		return nil
	}
	var table bytes.Buffer
	if err := printTable(&table, heading, rows, columns); err != nil {
		return err
	}
	return printf(out, "%s", block(terminal.Fit(out, table.String())))
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

func dash(text string) string { return cmp.Or(text, "-") }
