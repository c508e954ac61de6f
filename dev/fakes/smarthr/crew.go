package smarthr

// demo returns made-up people, one for every status.
func demo() []*Crew {
	return []*Crew{
		{ID: "11111111-1111-4111-8111-111111111111", Code: "0001", LastName: "架空", FirstName: "太郎", BusinessLast: "仮",
			BusinessFirst: "太郎",
			Departments:   []string{"開発部", "情報システム室"}, Position: "部長", PresetType: "full_timer", Status: "employed",
			Entered: "2015-04-01"},
		{ID: "22222222-2222-4222-8222-222222222222", Code: "0002", LastName: "見本", FirstName: "花子",
			LegacyDepartment: true, LegacyPosition: true,
			Departments: []string{"営業部"}, Position: "主任", PresetType: "part_timer", Status: "absent",
			Entered: "2020-10-01"},
		{ID: "33333333-3333-4333-8333-333333333333", Code: "0003", LastName: "例示", FirstName: "次郎",
			PresetType: "board_member", Status: "retired",
			Entered: "2010-04-01", Resigned: "2025-03-31"},
		{ID: "44444444-4444-4444-8444-444444444444", LastName: "試験", FirstName: "四子",
			PresetType: "outsourcing_contractor", Status: "employed"},
	}
}

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// whole is the record as SmartHR sends it: bank account, family and addresses come along unasked.
func (c *Crew) whole() map[string]any {
	record := map[string]any{
		"id": c.ID, "emp_code": nullable(c.Code), "last_name": c.LastName, "first_name": c.FirstName,
		"business_last_name": nullable(c.BusinessLast), "business_first_name": nullable(c.BusinessFirst),
		"emp_status": c.Status, "entered_at": nullable(c.Entered), "resigned_at": nullable(c.Resigned),
		"employment_type": map[string]any{"id": Canary, "name": Canary, "preset_type": c.PresetType},
		"department":      nil, "position": nil, "departments": []any{}, "positions": []any{},
		"last_name_yomi": Canary, "birth_at": "1912-06-23", "gender": Canary, "email": Canary, "tel_number": Canary,
		"address":          map[string]any{"pref": Canary, "city": Canary},
		"bank_accounts":    []any{map[string]any{"number": Canary}},
		"social_insurance": Canary, "employment_insurance_insured_person_number": Canary,
		"basic_pension_number": Canary,
		"family_members":       []any{map[string]any{"last_name": Canary}},
		"custom_fields":        []any{map[string]any{"value": Canary}},
	}
	if c.LegacyDepartment {
		if len(c.Departments) > 0 {
			record["department"] = c.Departments[0]
		}
	} else {
		list := []any{}
		for _, name := range c.Departments {
			list = append(list, map[string]any{"id": Canary, "name": name, "full_name": Canary})
		}
		record["departments"] = append(list, nil)
	}
	switch {
	case c.Position == "":
	case c.LegacyPosition:
		record["position"] = c.Position
	default:
		record["position"] = map[string]any{"id": Canary, "name": c.Position}
	}
	return record
}
