package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hako-run/hako/dev/kit/measurement"
)

// curve is a set of lines over one quantity.
type curve struct {
	key, title string
	// x names the quantity, with its unit; what describes the measurement.
	x, what string
	lines   []line
}

type line struct{ key, name, unit string }

var curves = []curve{
	{"plugins", "Plugins", "plugins in the folder",
		"A folder of small plugins with consent, started a second time. A reload replaces the file of one plugin.",
		[]line{{"start_ms", "start to the first `tools/list`", "ms"}, {"list_ms", "`tools/list`", "ms"},
			{"reload_ms", "reload of one", "ms"}, {"mib", "heap", "MiB"}}},
	{"tools", "Tools", "tools in the catalog",
		"Tools of sources with ten each, behind a policy of 100 rules. A change replaces what one source offers.",
		[]line{{"list_ms", "`tools/list`, all pages", "ms"}, {"change_ms", "change of one source", "ms"},
			{"call_us", "a call", "us"}}},
	{"rules", "Policy rules", "rules",
		"Policies of which one rule in a hundred is for all calls and has a condition, which every decision evaluates. Each caller is new to the policy.",
		[]line{{"read_ms", "read the file", "ms"}, {"visible_us", "which of 100 tools are listed", "us"},
			{"decide_us", "decide about a call", "us"}}},
	{"callers", "Callers", "callers",
		"Calls of a tool that does nothing through the whole pipeline, two of each caller.",
		[]line{{"call_us", "a call", "us"}}},
	{"sessions", "Sessions", "open sessions",
		"Idle sessions of MCP 2025-11-25 without connections.",
		[]line{{"mib", "heap and stacks", "MiB"}, {"open_us", "open one", "us"},
			{"list_us", "`tools/list` in one of them", "us"}}},
	{"payload", "Payloads", "KiB of text, in and out",
		"An echo tool of the Go compiler over MCP HTTP, one call after the other.",
		[]line{{"call_ms", "a call", "ms"}}},
	{"replicas", "Replicas", "replicas",
		"From `make scaling` with 0.3 of a core for each replica; [scaling.md](scaling.md) says what that means.",
		[]line{{"reads_per_s", "reads", "calls/s"}, {"writes_per_s", "writes to 8 databases", "calls/s"},
			{"writes_to_one_per_s", "writes to one", "calls/s"}}},
}

var growthGoals = []goal{
	{"plugins_1000_start_ms", "start with 1,000 small plugins and a warm cache, until `tools/list` is answered", 1000,
		false},
	{"sessions_10000_mib", "memory of 10,000 idle sessions", 100, false},
}

const growthHead = `## Growth

` +
	"`make bench-growth`" + ` takes two minutes and draws how time and memory grow. Both axes of each picture are logarithmic; the dashed line is
linear growth of the first line. Times are processor time of the whole process, with the client in it, but for the start, which is the
fastest of three. *Power* is the exponent of the last step: 1 is linear, 0 is no growth.

| key | what | measured | bar | |
| --- | --- | --- | --- | --- |
`

// renderGrowth writes the section and, into folder, its pictures.
func renderGrowth(out io.Writer, results []measurement.Result) error {
	fmt.Fprint(out, growthHead)
	byKey := indexResults(results)
	for _, g := range growthGoals {
		fmt.Fprintln(out, g.row(byKey))
	}
	for _, c := range curves {
		if !slices.ContainsFunc(results, func(r measurement.Result) bool { return r.Curve == c.key }) {
			fmt.Fprintf(out, "\n### %s\n\nNot measured in this run.\n", c.title)
			continue
		}
		name := "growth-" + c.key + ".svg"
		picture := strings.ReplaceAll(c.draw(results), "`", "")
		if err := os.WriteFile(filepath.Join(folder, name), []byte(picture), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(out, "\n### %s\n\n%s\n\n![%s](images/%s)\n\n", c.title, c.what, c.title, name)
		c.table(out, results)
	}
	return nil
}

// table writes the points of all lines, and the power of the last step.
func (c *curve) table(out io.Writer, results []measurement.Result) {
	fmt.Fprintf(out, "| %s |", c.x)
	var at []float64
	for _, l := range c.lines {
		fmt.Fprintf(out, " %s (%s) |", l.name, l.unit)
		for _, r := range points(results, c.key, l.key) {
			at = append(at, r.X)
		}
	}
	fmt.Fprintf(out, "\n|%s\n", strings.Repeat(" --- |", len(c.lines)+1))
	slices.Sort(at)
	for _, x := range slices.Compact(at) {
		fmt.Fprintf(out, "| %.0f |", x)
		for _, l := range c.lines {
			list := points(results, c.key, l.key)
			i, ok := slices.BinarySearchFunc(list, x,
				func(r measurement.Result, x float64) int { return cmp.Compare(r.X, x) })
			if !ok {
				fmt.Fprint(out, " |")
				continue
			}
			fmt.Fprintf(out, " %s |", number(list[i].Value))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprint(out, "| *power* |")
	for _, l := range c.lines {
		fmt.Fprintf(out, " %s |", power(points(results, c.key, l.key)))
	}
	fmt.Fprintln(out)
}

// power is the exponent of the last step of a line.
func power(list []measurement.Result) string {
	if len(list) < 2 {
		return ""
	}
	a, b := list[len(list)-2], list[len(list)-1]
	return fmt.Sprintf("%.2f", math.Log(b.Value/a.Value)/math.Log(b.X/a.X))
}
