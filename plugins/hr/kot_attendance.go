package main

import "context"

// attendance returns the days of people. KING OF TIME's lists are of the whole company, so one reading serves them all.
func (k *kot) attendance(ctx context.Context, ids []string, m month) ([]result[attendance], error) {
	people, err := k.records(ctx, ids, m.days())
	if err != nil {
		return nil, err
	}
	results := make([]result[attendance], len(ids))
	for i, p := range people {
		if results[i].err = p.err; p.err != nil {
			continue
		}
		results[i].value = attendance{
			Period:  period{p.records[0].Date, p.records[len(p.records)-1].Date},
			Records: p.records,
			worth: worth{Notes: []string{k.lang.pick(
				"KING OF TIMEの日別データには欠勤の区分がありません。欠勤日数は calculate_overtime にあります。",
				"KING OF TIME's days do not tell absence; calculate_overtime has the days of absence.")}},
		}
	}
	return results, nil
}
