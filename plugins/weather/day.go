package main

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// dateLayout is the layout of a day's key: a date in Japan.
const dateLayout = time.DateOnly

// day is a forecast file's entry for one date at one place. What JMA gives no value for is empty or nil.
type day struct {
	date        time.Time // midnight in Japan
	code        string    // the weather code
	text        string    // the weather in JMA's words; the weekly bulletin has none
	wind, waves string
	slots       []slot
	rain        *int // the chance of rain of the whole day, in percent, from the weekly bulletin
	high, low   *int // in degrees Celsius
	highRange   []int
	lowRange    []int
	station     string // where high and low are for
	reliability string // A, B or C
}

// slot is a chance of rain, in percent, for six hours.
type slot struct {
	from    time.Time
	percent int
}

const slotLength = 6 * time.Hour

// places are the codes under which one place's values stand in a file: its class10 area and station in the short
// bulletin, its weekly area and station in the weekly one.
type places struct {
	area, station         string
	weekArea, weekStation string
}

// days merges what the two bulletins say about a place, by date. Where both speak the short one counts: it is newer.
func (f *forecast) days(p places) []*day {
	b := builder{}
	b.weather(f.short.weather(), p.area)
	b.slots(f.short.rain(), p.area)
	b.temperatures(f.short, p.station)
	b.week(f.week.weather(), p.weekArea)
	b.weekTemperatures(f.week.temperatures(), p.weekStation)
	days := slices.Collect(maps.Values(b))
	slices.SortFunc(days, func(x, y *day) int { return x.date.Compare(y.date) })
	return days
}

// builder collects days under their dates.
type builder map[string]*day

func (b builder) day(at time.Time) *day {
	key := at.Format(dateLayout)
	d, ok := b[key]
	if !ok {
		d = &day{date: midnight(at)}
		b[key] = d
	}
	return d
}

func midnight(t time.Time) time.Time {
	y, m, d := t.In(jst).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, jst)
}

func (b builder) weather(s series, area string) {
	values := s.area(area)
	s.each(func(i int, t time.Time) {
		d := b.day(t)
		d.code, d.text = cleanCode(at(values.Codes, i)), clean(at(values.Weathers, i))
		d.wind, d.waves = clean(at(values.Winds, i)), clean(at(values.Waves, i))
	})
}

func (b builder) slots(s series, area string) {
	values := s.area(area)
	s.each(func(i int, t time.Time) {
		if percent := percentage(at(values.Pops, i)); percent != nil {
			d := b.day(t)
			d.slots = append(d.slots, slot{t, *percent})
		}
	})
}

// temperatures reads the short bulletin's. An entry for 09:00 is the day's maximum. One for 00:00 is the day's minimum,
// but not for the day of the report itself: there the file repeats the maximum. So it never has a minimum for the day
// of the report.
func (b builder) temperatures(short bulletin, station string) {
	s := short.temperatures()
	values := s.area(station)
	today := midnight(short.reported())
	s.each(func(i int, t time.Time) {
		value := degrees(at(values.Temps, i))
		if value == nil {
			return
		}
		switch d := b.day(t); {
		case t.Hour() == 9:
			d.high, d.station = value, clean(values.Area.Name)
		case t.Hour() == 0 && midnight(t).After(today):
			d.low, d.station = value, clean(values.Area.Name)
		}
	})
}

func (b builder) week(s series, area string) {
	values := s.area(area)
	s.each(func(i int, t time.Time) {
		d := b.day(t)
		if d.code == "" && d.text == "" {
			d.code = cleanCode(at(values.Codes, i))
		}
		d.rain = percentage(at(values.Pops, i))
		d.reliability = cleanCode(at(values.Reliabilities, i))
	})
}

// weekTemperatures fills in the days of which the short bulletin has no temperature at all: the two are often for
// different stations.
func (b builder) weekTemperatures(s series, station string) {
	values := s.area(station)
	s.each(func(i int, t time.Time) {
		d := b.day(t)
		if d.station != "" {
			return
		}
		d.high, d.low = degrees(at(values.Max, i)), degrees(at(values.Min, i))
		d.highRange = degreeRange(at(values.MaxLower, i), at(values.MaxUpper, i))
		d.lowRange = degreeRange(at(values.MinLower, i), at(values.MinUpper, i))
		if d.high != nil || d.low != nil {
			d.station = clean(values.Area.Name)
		}
	})
}

// empty reports that the file names the date but says nothing about it.
func (d *day) empty() bool {
	return d.code == "" && d.text == "" && d.high == nil && d.low == nil && d.rain == nil && d.slots == nil
}

// remaining returns the slots that are not over yet.
func (d *day) remaining(now time.Time) []slot {
	return slices.DeleteFunc(slices.Clone(d.slots), func(s slot) bool { return !s.from.Add(slotLength).After(now) })
}

// chanceOfRain is the highest of what is left of the day, in percent; nil if nothing is known.
func (d *day) chanceOfRain(now time.Time) *int {
	highest := d.rain
	for i, s := range d.remaining(now) {
		if i == 0 || s.percent > *highest {
			highest = &s.percent
		}
	}
	return highest
}

func percentage(text string) *int { return within(text, 0, 100) }

// degrees reads a temperature; what no place on earth has is taken for a missing value.
func degrees(text string) *int { return within(text, -90, 60) }

func within(text string, low, high int) *int {
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return nil
	}
	return &n
}

func degreeRange(lower, upper string) []int {
	l, u := degrees(lower), degrees(upper)
	if l == nil || u == nil {
		return nil
	}
	return []int{*l, *u}
}
