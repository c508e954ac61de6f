package main

import "strings"

// dashboard is one file. Its rows are laid out from top to bottom, the panels of each from left to right.
type dashboard struct {
	name, title, about string
	variables          []variable
	rows               []row
}

// variable is a list at the top of a dashboard, of the values of a label.
type variable struct{ name, label, query string }

type row struct {
	title  string
	panels []panel
}

// panel is one figure or chart. In its queries @ stands for the labels that every one of them has.
type panel struct {
	kind, title, about, unit string
	width, height            int
	stacked                  bool
	queries                  []query
}

type query struct{ legend, expr string }

// own are the labels of the hako processes that are looked at.
const own = `job=~"$job", instance=~"$instance"`

// Widths and heights, of 24 columns.
const (
	columns    = 24
	statHeight = 4
	tall       = 8
)

// q is a query and what its series are called.
func q(legend, expr string) query { return query{legend, strings.ReplaceAll(expr, "@", own)} }

// stat is one figure.
func stat(title, about, unit, expr string) panel {
	return panel{kind: "stat", title: title, about: about, unit: unit, width: 4, height: statHeight,
		queries: []query{q("", expr)}}
}

// lines is a chart of what changes with time.
func lines(title, about, unit string, queries ...query) panel {
	return panel{kind: "timeseries", title: title, about: about, unit: unit, width: 12, height: tall, queries: queries}
}

// stack is lines on top of each other, where their sum says something.
func stack(title, about, unit string, queries ...query) panel {
	p := lines(title, about, unit, queries...)
	p.stacked = true
	return p
}

// table is a list of labels, one series a line.
func table(title, about, expr string) panel {
	return panel{kind: "table", title: title, about: about, unit: "short", width: 12, height: tall,
		queries: []query{q("", expr)}}
}

// ranked is a list of bars, for the most of something.
func ranked(title, about, unit, legend, expr string) panel {
	return panel{kind: "bargauge", title: title, about: about, unit: unit, width: 12, height: tall,
		queries: []query{q(legend, expr)}}
}

// heat shows how often something took how long.
func heat(title, about, expr string) panel {
	return panel{kind: "heatmap", title: title, about: about, unit: "s", width: 12, height: tall,
		queries: []query{q("{{le}}", expr)}}
}

// quantiles are lines for the median and the slow ones of a histogram, by labels, which may be empty.
func quantiles(title, about, metric, by string) panel {
	p := lines(title, about, "s")
	legend := ""
	for label := range strings.FieldsFuncSeq(by, func(r rune) bool { return r == ',' || r == ' ' }) {
		legend += " {{" + label + "}}"
	}
	if by != "" {
		by = ", " + by
	}
	for _, of := range []struct{ name, share string }{{"p50", "0.5"}, {"p95", "0.95"}, {"p99", "0.99"}} {
		p.queries = append(p.queries, q(of.name+legend, "histogram_quantile("+of.share+", sum by (le"+by+") (rate("+
			metric+"[$__rate_interval])))"))
	}
	return p
}
