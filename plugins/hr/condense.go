package main

import (
	"reflect"
	"slices"
)

// condense leaves out what says nothing: of each day the fields that are zero, and the days that have nothing else. It
// loses no figure.
func (a *attendance) condense() {
	a.NotKnown, a.WithoutEntries = []string{}, map[string][]date{}
	for i := range a.Records {
		r := &a.Records[i]
		r.leaveOutZeros()
		if i == 0 {
			a.NotKnown = orEmpty(slices.Clone(r.NotKnown))
		}
		a.NotKnown = slices.DeleteFunc(a.NotKnown, func(name string) bool { return !slices.Contains(r.NotKnown, name) })
	}
	a.Records = slices.DeleteFunc(orEmpty(a.Records), func(r record) bool {
		if !r.isWithoutEntries(a.NotKnown) {
			return false
		}
		a.WithoutEntries[r.DayType] = append(a.WithoutEntries[r.DayType], r.Date)
		return true
	})
	for i := range a.Records {
		r := &a.Records[i]
		r.NotKnown = slices.DeleteFunc(r.NotKnown, func(name string) bool { return slices.Contains(a.NotKnown, name) })
	}
}

// leaveOutZeros makes nil mean zero, and lists what is not known. The vendor's word for the kind of day stays where it
// has no counterpart.
func (r *record) leaveOutZeros() {
	if r.DayType != unknown {
		r.DayTypeRaw = nil
	}
	leaveOut(r, &r.BreakMinutes, "break_minutes")
	leaveOut(r, &r.WorkMinutes, "work_minutes")
	leaveOut(r, &r.LegalHolidayWork, "legal_holiday_work_minutes")
	leaveOut(r, &r.PrescribedHoliday, "prescribed_holiday_work_minutes")
	leaveOut(r, &r.LateMinutes, "late_minutes")
	leaveOut(r, &r.EarlyLeaveMinutes, "early_leave_minutes")
	leaveOut(r, &r.IsAbsent, "is_absent")
	leaveOut(r, &r.PaidLeaveDays, "paid_leave_days")
	leaveOut(r, &r.PaidLeaveMinutes, "paid_leave_minutes")
	leaveOut(r, &r.SpecialLeaveDays, "special_leave_days")
}

func leaveOut[T comparable](r *record, value **T, name string) {
	var zero T
	switch {
	case *value == nil:
		r.NotKnown = append(r.NotKnown, name)
	case **value == zero:
		*value = nil
	}
}

// isWithoutEntries reports a day of which nothing is told but its type, after leaveOutZeros.
func (r *record) isWithoutEntries(notKnown []string) bool {
	bare := record{Date: r.Date, DayType: r.DayType, NotKnown: r.NotKnown}
	return len(r.NotKnown) == len(notKnown) && reflect.DeepEqual(*r, bare)
}
