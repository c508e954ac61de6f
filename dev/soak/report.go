package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// series is one thing that was watched.
type series struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Middle and Last are medians of the second third of the run and of the last.
	Middle float64 `json:"middle"`
	Last   float64 `json:"last"`
	Max    float64 `json:"max"`
	// slack is the growth that is allowed besides a tenth.
	slack float64
	of    func(sample) float64
}

func watchedSeries() []series {
	const mib = 1 << 20
	return []series{
		{Name: "resident memory", Unit: "MiB", slack: 16, of: func(s sample) float64 { return s.resident / mib }},
		{Name: "heap", Unit: "MiB", slack: 16, of: func(s sample) float64 { return s.heap / mib }},
		{Name: "goroutines", slack: 20, of: func(s sample) float64 { return s.goroutines }},
		{Name: "open files", slack: 10, of: func(s sample) float64 { return s.files }},
	}
}

// report is the outcome of a run.
type report struct {
	Duration string   `json:"duration"`
	Capacity float64  `json:"capacity_calls_per_second"`
	Rate     float64  `json:"load_calls_per_second"`
	Good     int64    `json:"calls_answered"`
	Bad      int64    `json:"calls_wrong"`
	Late     int64    `json:"calls_not_sent"`
	Sessions int64    `json:"sessions"`
	Series   []series `json:"series"`
}

func summarise(samples []sample, c *counts) *report {
	r := &report{Good: c.good.Load(), Bad: c.bad.Load(), Late: c.late.Load(), Sessions: c.sessions.Load(),
		Series: watchedSeries()}
	third := len(samples) / 3
	if third == 0 {
		return r
	}
	for i := range r.Series {
		s := &r.Series[i]
		s.Middle, s.Last = median(samples[third:2*third], s.of), median(samples[2*third:], s.of)
		for _, one := range samples {
			s.Max = max(s.Max, s.of(one))
		}
	}
	return r
}

func median(samples []sample, of func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// String is the report for people.
func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b,
		"%d calls answered as they should, %d not, %d not sent because the server was behind; %d sessions\n", r.Good,
		r.Bad, r.Late, r.Sessions)
	for _, s := range r.Series {
		fmt.Fprintf(&b, "%-16s second third %8.1f, last third %8.1f, highest %8.1f %s\n", s.Name, s.Middle, s.Last,
			s.Max, s.Unit)
	}
	return b.String()
}

// verdict is an error if something grew, or if calls were answered wrongly.
func (r *report) verdict() error {
	var errs []error
	for _, s := range r.Series {
		if s.Middle == 0 || s.Last > s.Middle*1.1+s.slack {
			errs = append(errs, fmt.Errorf("%s grew from %.1f to %.1f %s", s.Name, s.Middle, s.Last, s.Unit))
		}
	}
	if r.Bad > 0 {
		errs = append(errs, fmt.Errorf("%d calls were not answered as they should", r.Bad))
	}
	return errors.Join(errs...)
}

// table is all samples as CSV.
func table(samples []sample) []byte {
	var b bytes.Buffer
	b.WriteString("seconds,resident_bytes,heap_bytes,goroutines,open_files,calls\n")
	for _, s := range samples {
		fmt.Fprintf(&b, "%.0f,%.0f,%.0f,%.0f,%.0f,%.0f\n", s.at.Seconds(), s.resident, s.heap, s.goroutines, s.files,
			s.calls)
	}
	return b.Bytes()
}

// plot draws each series in a panel of its own, from zero.
func plot(samples []sample) []byte {
	const width, height, left, gap = 900, 150, 80, 30
	all := watchedSeries()
	var b bytes.Buffer
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		width+left+20, len(all)*(height+gap)+gap)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	for i, s := range all {
		top, highest := float64(gap+i*(height+gap)), 1.0
		for _, one := range samples {
			highest = max(highest, s.of(one)*1.1)
		}
		fmt.Fprintf(&b,
			`<text x="%d" y="%.0f">%s %s</text><text x="8" y="%.0f">%.0f</text><text x="8" y="%.0f">0</text>`+"\n",
			left, top-6, s.Name, s.Unit, top+10, highest, top+height)
		fmt.Fprintf(&b, `<rect x="%d" y="%.0f" width="%d" height="%d" fill="none" stroke="#ccc"/>`+"\n", left, top,
			width, height)
		fmt.Fprint(&b, `<polyline fill="none" stroke="#2563eb" points="`)
		for j, one := range samples {
			fmt.Fprintf(&b, "%.1f,%.1f ", left+float64(j)*width/float64(max(len(samples)-1, 1)),
				top+height*(1-s.of(one)/highest))
		}
		b.WriteString(`"/>` + "\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
