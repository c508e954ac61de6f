package main

import "context"

func (k *kot) attendance(ctx context.Context, employee string, m month) (*attendance, error) {
	records, err := k.records(ctx, employee, m.days())
	if err != nil {
		return nil, err
	}
	if err := k.addClocks(ctx, employee, m.days(), records); err != nil {
		return nil, err
	}
	return &attendance{
		Period:  period{records[0].Date, records[len(records)-1].Date},
		Records: records,
		Notes: []string{k.lang.pick("KING OF TIMEの日別データには欠勤の区分がないため、is_absent は null です。欠勤日数は calculate_overtime にあります。",
			"KING OF TIME's days do not tell absence, so is_absent is null; calculate_overtime has the days of absence.")},
	}, nil
}
