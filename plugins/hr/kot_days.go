package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/hako-run/hako/pdk/abi"
)

// kotWindow is the longest period that KING OF TIME serves at once, in days.
const kotWindow = 62

// eachDay reads a list by day and calls each with the entries of the people in index, by their place in it. The list
// comes for the whole company: the entries of others are skipped unread. The period is asked for in windows that KING
// OF TIME accepts, and in halves of these where an answer is too large.
func (k *kot) eachDay(ctx context.Context, path string, index map[string]int, in period,
	each func(i int, entry object)) error {
	for start := in.Start; start <= in.End; start = start.add(kotWindow) {
		if err := k.window(ctx, path, index, period{start, min(in.End, start.add(kotWindow-1))}, each); err != nil {
			return err
		}
	}
	return nil
}

func (k *kot) window(ctx context.Context, path string, index map[string]int, in period, each func(int, object)) error {
	response, err := k.get(ctx, path, url.Values{"start": {string(in.Start)}, "end": {string(in.End)}})
	var limit *abi.Error
	if errors.As(err, &limit) && limit.Code == abi.CodeLimit && in.Start < in.End {
		first, second := in.halves()
		if err := k.window(ctx, path, index, first, each); err != nil {
			return err
		}
		return k.window(ctx, path, index, second, each)
	}
	if err != nil {
		return err
	}
	return k.entries(response.Body, path, index, each)
}

// entries finds the entries of people in [{date, dailyWorkings: [{employeeKey, ...}]}]. Each is a document of its own,
// because what is wrong with one says nothing about the others.
func (k *kot) entries(body []byte, path string, index map[string]int, each func(int, object)) error {
	var days []struct {
		DailyWorkings []json.RawMessage `json:"dailyWorkings"`
	}
	if err := json.Unmarshal(body, &days); err != nil {
		d := k.document()
		d.malformed(path, "[{dailyWorkings: [...]}]")
		return d.err
	}
	for _, day := range days {
		for _, raw := range day.DailyWorkings {
			var entry struct {
				EmployeeKey string `json:"employeeKey"`
			}
			if json.Unmarshal(raw, &entry) != nil {
				continue
			}
			if i, ok := index[entry.EmployeeKey]; ok {
				each(i, k.document().object("dailyWorkings["+clip(entry.EmployeeKey)+"]", raw))
			}
		}
	}
	return nil
}

// halves divides a period of at least two days.
func (p period) halves() (first, second period) {
	days := int(p.End.midnight().Sub(p.Start.midnight()).Hours() / 24)
	middle := p.Start.add(days / 2)
	return period{p.Start, middle}, period{middle.add(1), p.End}
}

// kotDays maps workdayTypeName. Companies may call their kinds of days otherwise.
var kotDays = map[string]string{
	"平日":    weekday,
	"法定外休日": weekend,
	"法定休日":  holiday,
}

// kotDaysOf are one person's days, or why they cannot be read.
type kotDaysOf struct {
	records []record
	byDate  map[date]int // the place of a day in records
	err     error
}

// records reads the days of people in a period, in the order of their ids, with the clock times of the other list.
func (k *kot) records(ctx context.Context, ids []string, in period) ([]kotDaysOf, error) {
	people, index := make([]kotDaysOf, len(ids)), byID(ids)
	err := k.eachDay(ctx, "/daily-workings", index, in, func(i int, o object) {
		p := &people[i]
		p.records = append(p.records, k.record(o))
		p.err = cmp.Or(p.err, o.err)
	})
	if err != nil {
		return nil, err
	}
	for i := range people {
		p := &people[i]
		if len(p.records) == 0 {
			p.err = &dataError{k.lang.errorf(
				"KING OF TIMEには、従業員 %s の %s から %s までの勤怠がありません。IDは list_employees で調べてください。",
				"KING OF TIME has no attendance of employee %s from %s to %s: list_employees finds ids", clip(ids[i]),
				in.Start, in.End)}
		}
		slices.SortStableFunc(p.records, func(a, b record) int { return cmp.Compare(a.Date, b.Date) })
		p.byDate = make(map[date]int, len(p.records))
		for n, r := range p.records {
			p.byDate[r.Date] = n
		}
	}
	if !slices.ContainsFunc(people, func(p kotDaysOf) bool { return p.err == nil }) {
		return people, nil
	}
	return people, k.eachDay(ctx, "/daily-workings/timerecord", index, in, func(i int, o object) {
		p := &people[i]
		if n, ok := p.byDate[o.date("date")]; ok {
			p.records[n].setKOTClock(o)
		}
		p.err = cmp.Or(p.err, o.err)
	})
}

// record reads a daily working.
func (k *kot) record(o object) record {
	r := record{
		Date:              o.date("date"),
		DayType:           unknown,
		DayTypeRaw:        clipped(o.text("workdayTypeName")),
		OvertimeMinutes:   o.minutes("overtime") + o.minutes("lateNightOvertime"),
		WithinStatutory:   o.minutes("unassigned") + o.minutes("lateNightUnassigned"),
		LateNightOvertime: o.minutes("lateNightOvertime"),
		LateMinutes:       o.optionalMinutes("late"),
		EarlyLeaveMinutes: o.optionalMinutes("earlyLeave"),
	}
	work, breaks := o.minutes("totalWork"), o.minutes("breakTime")
	r.WorkMinutes, r.BreakMinutes = &work, &breaks
	if known, ok := kotDays[*r.DayTypeRaw]; ok {
		r.DayType = known
	}
	r.setKOTHoliday(work)
	r.setKOTLeave(o)
	if o.has("isError") && o.flag("isError") {
		r.addFault(o.lang, vendorFault)
	}
	return r
}

// setKOTHoliday counts work on a day off by the kind of day. Work on a legal holiday is no overtime, as freee and the
// law have it.
func (r *record) setKOTHoliday(work int) {
	var legal, prescribed int
	switch r.DayType {
	case holiday:
		legal = work
		r.OvertimeMinutes, r.WithinStatutory, r.LateNightOvertime = 0, 0, 0
	case weekend:
		prescribed = work
	case unknown:
		return // nobody can say what kind of work it is
	}
	r.LegalHolidayWork, r.PrescribedHoliday = &legal, &prescribed
}

// kotPaidLeave are names of 年次有給休暇; the codes of leave are each company's own.
var kotPaidLeave = []string{"有休", "有給", "有給休暇", "年次有給休暇", "年次有休", "年休"}

func isPaidLeave(name string) bool { return slices.Contains(kotPaidLeave, name) }

// setKOTLeave reads holidaysObtained. Leave that is not paid leave by its name is in the notes.
func (r *record) setKOTLeave(o object) {
	var days float64
	var minutes int
	whole := false
	add := func(leave object, share float64, length int) {
		name := leave.text("name")
		if !isPaidLeave(name) {
			r.Notes = append(r.Notes, o.lang.sprintf("休暇: %s", "leave: %s", clip(name)))
			return
		}
		r.IsPaidLeave = true
		days, minutes, whole = days+share, minutes+length, whole || share > 0
	}
	if o.has("holidaysObtained") {
		taken := o.child("holidaysObtained")
		if taken.has("fulltimeHoliday") {
			add(taken.child("fulltimeHoliday"), 1, 0)
		}
		for _, leave := range taken.optionalChildren("halfdayHolidays") {
			add(leave, 0.5, 0)
		}
		for _, leave := range taken.optionalChildren("hourHolidays") {
			add(leave, 0, leave.minutes("minutes"))
		}
	}
	r.PaidLeaveDays = &days
	if !whole {
		r.PaidLeaveMinutes = &minutes
	}
}

// Codes of clock times (timeRecord[].code).
const (
	kotIn  = "1"
	kotOut = "2"
)

// setKOTClock fills in the first clock-in and the last clock-out of the day.
func (r *record) setKOTClock(o object) {
	var in, out *time.Time
	started, ended := 0, 0
	for _, clock := range o.optionalChildren("timeRecord") {
		at := clock.optionalTime("time")
		if at == nil {
			continue
		}
		switch clock.code("code") {
		case kotIn:
			started++
			if in == nil || at.Before(*in) {
				in = at
			}
		case kotOut:
			ended++
			if out == nil || at.After(*out) {
				out = at
			}
		}
	}
	r.ClockIn, r.ClockOut = r.clock(o, in), r.clock(o, out)
	r.IsOpen = started > ended
	switch {
	case started > ended:
		r.addFault(o.lang, missingClockOut)
	case ended > started:
		r.addFault(o.lang, missingClockIn)
	case in != nil && out.Before(*in):
		r.addFault(o.lang, impossibleTime)
	default:
		return
	}
	r.WorkMinutes = nil
}
