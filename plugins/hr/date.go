package main

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

var jst = time.FixedZone("JST", 9*60*60)

const dateLayout = "2006-01-02"

// date is a day as YYYY-MM-DD, so that dates compare as strings do.
type date string

// parseDate reads the day of a date or of a time in RFC 3339, whose first ten characters it is.
func parseDate(s string) (date, error) {
	if len(s) > 10 && s[10] == 'T' {
		s = s[:10]
	}
	if _, err := time.Parse(dateLayout, s); err != nil {
		return "", fmt.Errorf("is not a date (YYYY-MM-DD)")
	}
	return date(s), nil
}

func dateOf(t time.Time) date { return date(t.In(jst).Format(dateLayout)) }

// midnight is the start of the day in Japan.
func (d date) midnight() time.Time {
	t, _ := time.ParseInLocation(dateLayout, string(d), jst)
	return t
}

func (d date) add(days int) date { return dateOf(d.midnight().AddDate(0, 0, days)) }

// period is a span of days, both ends included.
type period struct {
	Start date `json:"start"`
	End   date `json:"end"`
}

func (p period) contains(d date) bool { return p.Start <= d && d <= p.End }

// overlap returns the part that p and q share; ok is false if there is none.
func (p period) overlap(q period) (shared period, ok bool) {
	shared = period{max(p.Start, q.Start), min(p.End, q.End)}
	return shared, shared.Start <= shared.End
}

// month is a calendar month.
type month struct {
	year  int
	month time.Month
}

// Months that vendors serve (freee's bounds).
const (
	firstYear = 2000
	lastYear  = 2100
)

// parseMonth reads YYYY-MM.
func parseMonth(lang language, s string) (month, error) {
	t, err := time.Parse("2006-01", s)
	if err != nil || len(s) != 7 {
		return month{}, lang.errorf("month の値 %q は YYYY-MM の形にしてください（例: 2026-05）。",
			"month is %q and must be YYYY-MM, such as 2026-05", clip(s))
	}
	if t.Year() < firstYear || t.Year() > lastYear {
		return month{}, lang.errorf("month の値 %s は %d年から%d年までの間にしてください。",
			"month is %s and must be in the years %d to %d", s, firstYear, lastYear)
	}
	return month{t.Year(), t.Month()}, nil
}

func monthOf(t time.Time) month { return month{t.Year(), t.Month()} }

func (m month) String() string { return fmt.Sprintf("%04d-%02d", m.year, int(m.month)) }

func (m month) add(n int) month {
	return monthOf(time.Date(m.year, m.month+time.Month(n), 1, 0, 0, 0, 0, jst))
}

func (m month) days() period {
	first := time.Date(m.year, m.month, 1, 0, 0, 0, 0, jst)
	return period{dateOf(first), dateOf(first.AddDate(0, 1, -1))}
}

// closing is the closing day in the month, which is its last day where the month is too short for it.
func (m month) closing(day int) date {
	days := m.days()
	return min(days.Start.add(day-1), days.End)
}

// clock shows a time as HH:MM of the day d, the hours counting on past midnight ("25:30" is half past one the next
// morning), as freee and KING OF TIME do. ok is false if the time lies before the day or more than two days after its
// start.
func clock(d date, t time.Time) (text string, ok bool) {
	minutes := int(t.Sub(d.midnight()).Minutes())
	if t.Before(d.midnight()) || minutes >= 48*60 {
		return "", false
	}
	return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60), true
}

// clip keeps a text that is shown but was written by others to one line of a bearable length.
func clip(s string) string {
	const limit = 100
	runes := []rune(strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), isBlank), " "))
	if len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return string(runes)
}

// isBlank reports spaces and characters that do not show, such as ends of lines and those that turn the direction of
// writing.
func isBlank(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}
