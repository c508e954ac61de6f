package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/hako-run/hako/dev/kit/measurement"
)

// The size of a panel of a chart, and of its margins around the plot.
const (
	panelWidth, panelHeight  = 440, 300
	left, right, top, bottom = 58, 18, 62, 44
)

// style colours a chart for light and dark pages.
const style = `<style>
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600 }
.grid { stroke: #d8dee4 }
.linear { stroke: #8c959f; stroke-dasharray: 4 4 }
.c0 { --c: #0969da } .c1 { --c: #bc4c00 } .c2 { --c: #1a7f37 }
polyline { fill: none; stroke: var(--c); stroke-width: 2 }
circle { fill: var(--c) }
@media (prefers-color-scheme: dark) {
	text { fill: #e6edf3 }
	.grid { stroke: #30363d }
	.c0 { --c: #58a6ff } .c1 { --c: #f0883e } .c2 { --c: #3fb950 }
}
</style>
`

// draw returns an SVG picture of a curve, both axes logarithmic, with a panel for each unit.
func (c *curve) draw(results []measurement.Result) string {
	var units []string
	for _, l := range c.lines {
		if !slices.Contains(units, l.unit) {
			units = append(units, l.unit)
		}
	}
	var out strings.Builder
	width := panelWidth * len(units)
	fmt.Fprintf(&out,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%d" role="img">`+
			"\n<title>%s</title>\n%s", width, panelHeight, html.EscapeString(c.title), style)
	for i, unit := range units {
		p := panel{curve: c, unit: unit}
		for _, l := range c.lines {
			if l.unit == unit {
				p.add(l, points(results, c.key, l.key))
			}
		}
		fmt.Fprintf(&out, "<g transform=\"translate(%d 0)\">\n", i*panelWidth)
		p.draw(&out)
		out.WriteString("</g>\n")
	}
	out.WriteString("</svg>\n")
	return out.String()
}

// points returns the measured points of a line.
func points(results []measurement.Result, curve, line string) (list []measurement.Result) {
	for _, r := range results {
		if r.Curve == curve && r.Line == line && r.Value > 0 {
			list = append(list, r)
		}
	}
	return list
}

// panel is the part of a chart with the lines of one unit.
type panel struct {
	curve *curve
	unit  string
	lines []line
	data  [][]measurement.Result
	x, y  axis
}

func (p *panel) add(l line, data []measurement.Result) {
	p.lines, p.data = append(p.lines, l), append(p.data, data)
	for _, point := range data {
		p.x.include(point.X)
		p.y.include(point.Value)
	}
}

func (p *panel) draw(out *strings.Builder) {
	p.x.from, p.x.to = left, panelWidth-right
	p.y.from, p.y.to = panelHeight-bottom, top
	p.y.round()
	for _, tick := range p.y.ticks() {
		y := p.y.at(tick)
		fmt.Fprintf(out, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, left, panelWidth-right, y, y)
		fmt.Fprintf(out, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-6, y+4, short(tick))
	}
	for _, tick := range p.x.ticks() {
		x := p.x.at(tick)
		fmt.Fprintf(out, `<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, x, x, top, panelHeight-bottom)
		fmt.Fprintf(out, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x,
			panelHeight-bottom+17, short(tick))
	}
	fmt.Fprintf(out, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n",
		(left+panelWidth-right)/2, panelHeight-8,
		html.EscapeString(p.curve.x))
	fmt.Fprintf(out, `<text class="title" x="8" y="16">%s</text>`+"\n", html.EscapeString(p.unit))
	p.drawLinear(out)
	for i, l := range p.lines {
		var path []string
		for _, point := range p.data[i] {
			path = append(path, fmt.Sprintf("%.1f,%.1f", p.x.at(point.X), p.y.at(point.Value)))
		}
		fmt.Fprintf(out, `<g class="c%d"><polyline points="%s"/>`, i, strings.Join(path, " "))
		for _, at := range path {
			x, y, _ := strings.Cut(at, ",")
			fmt.Fprintf(out, `<circle cx="%s" cy="%s" r="3"/>`, x, y)
		}
		x, y := left+6+i%2*190, 34+i/2*16
		fmt.Fprintf(out, `<circle cx="%d" cy="%d" r="4"/><text x="%d" y="%d">%s</text></g>`+"\n", x, y-4, x+9, y,
			html.EscapeString(l.name))
	}
}

// drawLinear draws how the first line would go on from its first point if it grew linearly.
func (p *panel) drawLinear(out *strings.Builder) {
	if len(p.data[0]) < 2 {
		return
	}
	first := p.data[0][0]
	end := min(p.x.most, first.X*p.y.most/first.Value)
	fmt.Fprintf(out, `<line class="linear" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"><title>linear</title></line>`+"\n",
		p.x.at(first.X), p.y.at(first.Value), p.x.at(end), p.y.at(first.Value*end/first.X))
}

// axis maps values from least to most logarithmically to coordinates.
type axis struct{ least, most, from, to float64 }

func (a *axis) include(v float64) {
	if a.least == 0 || v < a.least {
		a.least = v
	}
	a.most = max(a.most, v)
}

// round extends the axis to its next ticks.
func (a *axis) round() {
	a.least = math.Pow(10, math.Floor(math.Log10(a.least)))
	a.most = math.Pow(10, math.Ceil(math.Log10(a.most*1.0001)))
}

func (a *axis) at(v float64) float64 {
	return a.from + (a.to-a.from)*math.Log(v/a.least)/math.Log(a.most/a.least)
}

// ticks returns the powers of ten on the axis, and if there are few also 2, 3 and 5 times those.
func (a *axis) ticks() (list []float64) {
	factors := []float64{1}
	if a.most/a.least < 30 {
		factors = []float64{1, 2, 3, 5}
	}
	for power := math.Pow(10, math.Floor(math.Log10(a.least))); power <= a.most; power *= 10 {
		for _, factor := range factors {
			if v := power * factor; v >= a.least*0.999 && v <= a.most*1.001 {
				list = append(list, v)
			}
		}
	}
	return list
}

// short writes a tick.
func short(v float64) string {
	if v >= 999 {
		return fmt.Sprintf("%.4gk", v/1000)
	}
	return fmt.Sprintf("%.4g", v)
}
